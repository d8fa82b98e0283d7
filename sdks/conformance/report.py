"""What came out: a line for each run, the table of SDKs and scenarios, and whether all is well."""

from pathlib import Path

from sdks.conformance.scenario import Scenario

BEGIN = "<!-- conformance: made by `python -m sdks.conformance --write` -->"
END = "<!-- end of conformance -->"

#: How a column is called where people read it.
TITLES = {
    "python": "Python",
    "go": "Go",
    "javascript": "JavaScript",
    "rust": "Rust",
    "java": "Java",
    "ruby": "Ruby",
}


class Results:
    """Of a run of scenarios by SDKs: an empty text for a scenario that passed, else why it failed."""

    def __init__(self, scenarios: list[Scenario], sdks: list[str]) -> None:
        self._scenarios = scenarios
        self._sdks = sdks
        self._found: dict[tuple[str, str], str] = {}

    def add(self, sdk: str, scenario: str, failure: str) -> None:
        self._found[sdk, scenario] = failure

    def failed(self, sdk: str) -> list[str]:
        """The names of the scenarios that failed."""
        return [name for (of, name), failure in self._found.items() if of == sdk and failure]

    def passed(self, sdk: str) -> int:
        return sum(of == sdk and not failure for (of, _), failure in self._found.items())

    def line(self, sdk: str, scenario: str, seconds: float) -> str:
        """Of one scenario."""
        failure = self._found[sdk, scenario]
        line = f"{'FAIL' if failure else 'ok  '}  {sdk:10}  {scenario:30} {seconds:6.1f} s"
        return f"{line}\n      {failure}" if failure else line

    def line_of(self, sdk: str, seconds: float) -> str:
        """Of one SDK."""
        if not any(of == sdk for of, _ in self._found):
            return f"{sdk}: no scenario ran: it has no driver (make -C sdks/{sdk} driver), or none was chosen"
        names = self.failed(sdk)
        line = f"{sdk}: scenarios: {self.passed(sdk)} of {len(self._scenarios)} passed, in {seconds:.0f} s"
        return f"{line}; failed: {', '.join(names)}" if names else line

    def table(self) -> str:
        """In Markdown, with the number of scenarios that passed."""
        titles = [TITLES[sdk] for sdk in self._sdks]
        rows = [f"| scenario | {' | '.join(titles)} |", f"|---|{':---:|' * len(self._sdks)}"]
        for scenario in self._scenarios:
            marks = [self._mark(sdk, scenario.name) for sdk in self._sdks]
            rows.append(f"| `{scenario.name}`: {scenario.about} | {' | '.join(marks)} |")
        passed = [f"**{self.passed(sdk)}**" for sdk in self._sdks]
        rows.append(f"| **passed, of {len(self._scenarios)}** | {' | '.join(passed)} |")
        return "\n".join(rows)

    def summary(self) -> str:
        failed = sum(bool(failure) for failure in self._found.values())
        missing = len(self._scenarios) * len(self._sdks) - len(self._found)
        return f"{len(self._found) - failed} passed, {failed} failed, {missing} did not run"

    def exit_code(self) -> int:
        """0 only if something ran, every SDK ran every scenario, and all passed."""
        complete = len(self._found) == len(self._scenarios) * len(self._sdks) > 0
        return 0 if complete and not any(self._found.values()) else 1

    def write(self, page: Path) -> None:
        """Put the table between the markers of a page. Raises ValueError when there are none."""
        page.write_text(between(page.read_text(), BEGIN, END, self.table()))

    def _mark(self, sdk: str, scenario: str) -> str:
        failure = self._found.get((sdk, scenario))
        return "-" if failure is None else "**no**" if failure else "yes"


def between(text: str, begin: str, end: str, content: str) -> str:
    """The text with this content between the two markers. Raises ValueError when they are not there."""
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"the page has no {begin!r} or no {end!r}")
    return f"{before}{begin}\n\n{content}\n\n{end}{after}"
