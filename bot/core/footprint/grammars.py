"""The tree-sitter grammars and, for each, the query that finds its definitions."""

from __future__ import annotations

from functools import cache

import tree_sitter_mlir
from tree_sitter import Language as Grammar
from tree_sitter import Parser, Query
from tree_sitter_language_pack import get_language

from bot.core.footprint.languages import Language

# @def: the whole definition; @name: its name, or the declarator that holds it; @body: what is no signature. A capture's
# suffix is the kind. Declarations are asked for under their possible parents, so that local variables never match.
_C_PARENTS = (
    "translation_unit",
    "declaration_list",
    "preproc_ifdef",
    "preproc_if",
    "preproc_else",
    "linkage_specification",
)
_C_FAMILY = """
    (function_definition declarator: (_) @name body: (_)? @body) @def.function
    (preproc_def name: (_) @name value: (_)? @body) @def.macro
    (preproc_function_def name: (_) @name value: (_)? @body) @def.macro
    (struct_specifier name: (_) @name body: (_) @body) @def.class
    (union_specifier name: (_) @name body: (_) @body) @def.class
    (enum_specifier name: (_) @name body: (_) @body) @def.enum
    (enumerator name: (_) @name) @def.enumerator
    (type_definition declarator: (_) @name) @def.alias
    (field_declaration declarator: (_) @name) @def.field
    """ + "\n".join(f"({parent} (declaration declarator: (_) @name) @def.variable)" for parent in _C_PARENTS)
_CPP = (
    _C_FAMILY
    + """
    (class_specifier name: (_) @name body: (_) @body) @def.class
    (alias_declaration name: (_) @name) @def.alias
    (concept_definition name: (_) @name) @def.concept
    (template_declaration (declaration declarator: (_) @name) @def.variable)
    (field_declaration_list (declaration declarator: (_) @name) @def.field)
    """
)
_PYTHON = """
    (function_definition name: (_) @name body: (_) @body) @def.function
    (class_definition name: (_) @name body: (_) @body) @def.class
    (module (assignment left: (identifier) @name) @def.variable)
    (module (expression_statement (assignment left: (identifier) @name) @def.variable))
    (class_definition body: (block (assignment left: (identifier) @name) @def.field))
    (class_definition body: (block (expression_statement (assignment left: (identifier) @name) @def.field)))
    (assignment
      left: (attribute object: (identifier) @self attribute: (identifier) @name) (#eq? @self "self")) @def.attribute
"""
_TABLEGEN = """
    (class name: (_) @name body: (_)? @body) @def.class
    (def (value) @name body: (_)? @body) @def.def
    (defm (value) @name) @def.def
    (multiclass (identifier) @name body: (_)? @body) @def.class
    (defvar (identifier) @name) @def.variable
"""
_CMAKE = """
    (function_def (function_command (argument_list . (argument) @name)) (body)? @body) @def.function
    (macro_def (macro_command (argument_list . (argument) @name)) (body)? @body) @def.function
    (normal_command (identifier) @command (argument_list . (argument) @name)
      (#match? @command "^([Aa][Dd][Dd]_|[Ss][Ee][Tt]$|[Oo][Pp][Tt][Ii][Oo][Nn]$)")) @def.target
"""
_MLIR = """
    (custom_operation (func_operation sym_name: (_) @name body: (_)? @body)) @def.function
    (custom_operation name: (_) (symbol_ref_id) @name (region) @body) @def.function
"""
_QUERIES = {
    Language.C: _C_FAMILY,
    Language.CPP: _CPP,
    Language.CUDA: _CPP,
    Language.PYTHON: _PYTHON,
    Language.TABLEGEN: _TABLEGEN,
    Language.CMAKE: _CMAKE,
    Language.MLIR: _MLIR,
}


@cache
def grammar(language: Language) -> Grammar:
    """The grammar itself; KeyError for OTHER."""
    if language is Language.MLIR:
        return Grammar(tree_sitter_mlir.language())
    return get_language(language.value)  # type: ignore[arg-type]


@cache
def parser(language: Language) -> Parser:
    """A parser that is kept: making one costs more than a small file."""
    return Parser(grammar(language))


@cache
def query(language: Language) -> Query:
    """The query for its definitions."""
    return Query(grammar(language), _QUERIES[language])
