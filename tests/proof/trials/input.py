"""Input: the bytes that the loader makes of a scenario, before the first call of the exchange and after each."""

from __future__ import annotations

from guard_proof.accounts import DATA, FIRST_SLOT, LENGTH, RENT_EPOCH, REPETITION, SPARE

from .scenario import Scenario, records


class Input:
    def __init__(self, scenario: Scenario) -> None:
        self.count = len(scenario.accounts)
        #: Where the record of each position's account is, and which position it stands in.
        self.addresses: list[int] = []
        self.homes: list[int] = []
        image = bytearray(len(scenario.accounts).to_bytes(8, "little"))
        start = FIRST_SLOT - 8
        for position, (account, record) in enumerate(zip(scenario.accounts, records(scenario), strict=True)):
            home = next(at for at, each in enumerate(scenario.accounts) if each.key == account.key)
            self.homes.append(home)
            if home < position:
                self.addresses.append(self.addresses[home])
                image += bytes([home]) + bytes(REPETITION - 1)
                continue
            self.addresses.append(start + len(image))
            image += record + bytes(SPARE + -len(record) % 8) + b"\xff" * RENT_EPOCH
        image += len(scenario.data).to_bytes(8, "little")
        self.data = start + len(image)
        self.data_length = len(scenario.data)
        image += scenario.data + scenario.program
        #: By how many calls were made.
        self.images = [bytes(image)]
        for changes in scenario.changes:
            for name, made, _ in changes:
                home = scenario.form.accounts.index(name)
                if home >= len(self.addresses):
                    continue
                base = self.addresses[home] - start
                for place, value in made:
                    image[base + place : base + place + 8] = value.to_bytes(8, "little")
            self.images.append(bytes(image))

    def has_return(self, call: int) -> bool:
        """Whether the exchange returns from its call of this number; a scenario's exchange always does."""
        return True

    def read(self, address: int, size: int, moment: int) -> int | None:
        image = self.images[min(moment, len(self.images) - 1)]
        at = address - (FIRST_SLOT - 8)
        if not 0 <= at <= len(image) - size:
            return None
        return int.from_bytes(image[at : at + size], "little")
