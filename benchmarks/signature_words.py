"""Learn the weights of bot.core.signature.wording: `python benchmarks/signature_words.py [--write]`.

Needs scikit-learn, which nothing else here does: `pip install scikit-learn`. The texts are those of
tests/data/signature-words.json, written for this; the other sets are never learned from. Prints what the weights say of
families that were left out, each in turn, and what they say of the texts of tests/data/signature-apart.json that no
rule decides; `--write` puts the weights of all families in words.json.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from unittest.mock import patch

from bot.core.signature import signature, wording

ROOT = Path(__file__).parents[1]
WEIGHTS = ROOT / "bot/core/signature/words.json"
Text = tuple[str, str, str]  # class, family, text


def learn(texts: list[Text]) -> dict[str, object]:
    """The weights of the words of `texts`, in hundredths, as words.json holds them."""
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression

    vectors = DictVectorizer()
    rows = vectors.fit_transform([dict.fromkeys(wording.features([text]), 1) for _, _, text in texts])
    model = LogisticRegression(C=4.0, max_iter=2000, class_weight="balanced").fit(rows, [cls for cls, _, _ in texts])
    weights = {
        str(name): [round(float(value) * 100) for value in column]
        for name, column in zip(vectors.get_feature_names_out(), model.coef_.T, strict=True)
    }
    return {
        "classes": [str(cls) for cls in model.classes_],
        "bias": [round(float(value), 3) for value in model.intercept_],
        "weights": {
            name: column for name, column in sorted(weights.items()) if any(abs(value) > 4 for value in column)
        },
    }


def said(texts: list[Text], learned: dict[str, object]) -> Counter[tuple[str, str]]:
    """How often a text of a class is given each class by the weights."""
    with patch.object(wording, "_model", lambda: (learned["classes"], learned["bias"], learned["weights"])):
        return Counter((cls, wording.guess([text])) for cls, _, text in texts)


def main() -> int:
    """Learn, print the figures; 1 where code is called infra in the texts apart."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="replace words.json")
    options = parser.parse_args()
    cases = json.loads((ROOT / "tests/data/signature-words.json").read_text())
    texts: list[Text] = [(case["class"], case["family"], case["text"]) for case in cases]
    left_out: Counter[tuple[str, str]] = Counter()
    for family in dict.fromkeys(name for _, name, _ in texts):
        left_out += said(
            [text for text in texts if text[1] == family], learn([text for text in texts if text[1] != family])
        )
    show("families left out", left_out)
    learned = learn(texts)
    apart = json.loads((ROOT / "tests/data/signature-apart.json").read_text())["cases"]
    undecided = [(case["class"], "", case["text"]) for case in apart if signature(case["text"], None).cls == "unknown"]
    figures = said(undecided, learned)
    show("texts apart that no rule decides", figures)
    if options.write:
        WEIGHTS.write_text(json.dumps(learned, separators=(",", ":")).replace('],"', '],\n"') + "\n")
    return int(figures["code", "infra"] > 0)


def show(name: str, figures: Counter[tuple[str, str]]) -> None:
    """One line: of how many texts the class was told right, left open, and what was told wrong."""
    right = sum(count for (cls, told), count in figures.items() if cls == told)
    wrong = {
        f"{cls} as {told}": count for (cls, told), count in sorted(figures.items()) if told not in (cls, "unknown")
    }
    print(f"{name}: {right} of {figures.total()} right, wrong: {wrong}")


if __name__ == "__main__":
    raise SystemExit(main())
