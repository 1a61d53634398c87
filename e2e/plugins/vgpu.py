"""What do the stand-ins for HAMi's plugin and for its child for Volcano have in common? The lists of cards.

`UUID,type,MiB,percent:` for each card, with a semicolon between containers, or after each.
"""

from typing import NamedTuple


class Cut(NamedTuple):
    """The next container's cards, and the list without them."""

    cards: list[list[str]]
    rest: str


def cut_next(text: str) -> Cut | None:
    """Take the first container's cards that has some; None where nothing is left."""
    parts = text.split(";")
    for place, part in enumerate(parts):
        cards = [entry.split(",") for entry in part.split(":") if "," in entry]
        if cards:
            return Cut(cards, ";".join([*parts[:place], "", *parts[place + 1 :]]))
    return None


def environment_of(cards: list[list[str]]) -> dict[str, str]:
    """Return what a container with these cards is told."""
    limits = {f"CUDA_DEVICE_MEMORY_LIMIT_{place}": f"{mib}m" for place, (_, _, mib, _) in enumerate(cards)}
    return {
        "NVIDIA_VISIBLE_DEVICES": ",".join(card[0] for card in cards),
        "CUDA_DEVICE_SM_LIMIT": cards[0][3],
        **limits,
    }
