"""The people of both projects: upstream's authors, and the fork's users and teams with what they may do there."""

from __future__ import annotations

from bot.sandbox.sample.history import Person

INES = Person("Inês Carvalho", "ines@acme.example", "ines-acme")
KENJI = Person("山田健二", "kenji@acme.example", "kenji-acme")
ZOFIA = Person("Zofia Wójcik", "zofia@acme.example", "zofia-acme")
OLU = Person("Olúfẹ́mi Adé", "olu@acme.example", "olu-acme")
RAVI = Person("Ravi Menon", "ravi@acme.example", "ravi-acme")
UPSTREAM_BOT = Person("acme-merge", "merge@acme.example", "acme-merge")

MIA = Person("Mia Okafor", "mia@fork.example", "mia-okafor")
JONAS = Person("Jonas Lind", "jonas@fork.example", "jonas-lind")
PRIYA = Person("Priya Raman", "priya@fork.example", "priya-raman")
WEN = Person("Wen Zhao", "wen@fork.example", "wen-zhao")
LEO = Person("Léo Hart", "leo@fork.example", "leo-hart")
SAM = Person("Sam Reed", "sam@elsewhere.example", "sam-reed")

UPSTREAM_ORG, FORK_ORG, NAME = "acme", "acme-fork", "tilec"

PERMISSIONS: dict[str, str] = {
    MIA.login: "admin",
    JONAS.login: "maintain",
    PRIYA.login: "write",
    WEN.login: "write",
    LEO.login: "write",
    SAM.login: "read",
}
TEAMS: dict[str, tuple[str, ...]] = {
    "compiler": (JONAS.login, MIA.login),
    "tlx": (PRIYA.login, LEO.login),
}
UPSTREAM_PEOPLE = tuple(person.login for person in (INES, KENJI, ZOFIA, OLU, RAVI))
