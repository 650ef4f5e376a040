"""Talk and decide nothing: one outside system a module, and it alone imports that library."""
