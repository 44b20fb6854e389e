"""Show integrity reports, repair plans, ledgers and anchors."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from conversations.humanize import counted
from conversations.ledger.types import LedgerReport
from integrity.anchors.types import AnchorVerdict, PublicKey
from integrity.types import IntegrityReport, RepairPlanRecord, ReportPage, StepRecord
from lcmsite.cli.terminal_layout import body, cell, heading, note, safe, show_one, table


@show_one.register
def _(report: IntegrityReport, console: Console) -> None:
    for result in report.invariants:
        found = f"{counted(result.count, 'finding')} "
        verdict = Text(found, "bold red") if result.count else Text("holds ", "green")
        console.print(Text.assemble(verdict, (f"{result.code}: ", "bold"), result.sentence), soft_wrap=True)
        for finding in result.findings:
            body(console, f"    {finding.id}: {finding.detail}", end="")
    if report.unchecked:
        names = ", ".join(map(str, report.unchecked))
        console.print(Text(f"Not checked, because it took too long: conversation {names}.", "bold red"))
    note(
        console,
        f"{counted(report.conversations_checked, 'conversation')} and "
        f"{counted(report.messages_checked, 'message')} checked: "
        f"{'everything holds' if report.is_clean else 'not everything holds'}. The report is {report.report_id}.",
    )
    if report.repair_id:
        note(console, f"The repair plan: lcm repairs {report.repair_id}")
    elif not report.is_clean:
        note(console, f"To plan repairs: lcm plan-repairs {report.report_id}")


@show_one.register
def _(page: ReportPage, console: Console) -> None:
    show_one(page.report, console)
    if page.findings:
        console.print(table(page.findings))
    if page.next_cursor is not None:
        note(console, f"There is more: lcm report {page.report.report_id} --cursor={page.next_cursor}")


@show_one.register
def _(plan: RepairPlanRecord, console: Console) -> None:
    heading(console, f"repair plan, {plan.state}", plan.repair_id, f"of {plan.report_id}", cell(plan.created_at))
    for step in plan.steps:
        _show_step(step, console)
    for each in plan.unplanned:
        console.print(Text.assemble((f"      {each.id} ", "bold"), safe(f"{each.code}: {each.why}")), soft_wrap=True)
    for name, value in plan.outcome.items():
        note(console, f"  {name}: {cell(value, longest=None)}")
    if not plan.steps and not plan.unplanned:
        note(console, "  Nothing is to be done.")


def _show_step(step: StepRecord, console: Console) -> None:
    where = "" if step.conversation_id is None else f" in conversation {step.conversation_id}"
    approved = f", by {step.approved_by}" if step.approved_by else ""
    lasting = "" if step.reversible else ", cannot be undone"
    console.print(
        Text.assemble(
            (f"{step.ordinal:>4}  ", "dim"),
            (safe(f"{step.operation} {step.target}"), "bold"),
            safe(f"{where}: {step.state}{approved}; risk {step.risk}{lasting}"),
        ),
        soft_wrap=True,
    )
    note(console, f"      {step.why}")
    note(console, f"      {cell(step.before)} -> {cell(step.after)}")


@show_one.register
def _(report: LedgerReport, console: Console) -> None:
    for finding in report.findings:
        # A finding without a line is about the anchor.
        where = f"line {finding.line}: " if finding.line else ""
        body(console, f"{where}{finding.detail} [{finding.code}]", end="")
    _show_more_findings(report.finding_count - len(report.findings), console)
    note(
        console,
        f"{counted(report.lines, 'line')}, {counted(report.conversations, 'conversation')}, "
        f"{counted(report.counts.messages, 'message')}, "
        f"{counted(report.counts.summaries, 'summary', 'summaries')}: "
        f"{'everything holds' if report.is_clean else 'not everything holds'}.",
    )
    note(console, f"The last line_hash is {report.line_hash or 'none'}.")
    if report.anchor is not None:
        anchor = report.anchor
        unnamed = f", {anchor.unnamed_conversations:,} not in the anchor" if anchor.unnamed_conversations else ""
        note(
            console,
            f"Compared with the anchor of {anchor.made_at} from {anchor.site}: "
            f"{counted(anchor.conversations, 'conversation')}{unnamed}. "
            + _signed_by(anchor.public_key, is_trusted=anchor.key_is_trusted),
        )


@show_one.register
def _(verdict: AnchorVerdict, console: Console) -> None:
    for finding in verdict.findings:
        body(console, f"{finding.id}: {finding.detail} [{finding.code}]", end="")
    _show_more_findings(verdict.finding_count - len(verdict.findings), console)
    unnamed = f" and {verdict.unnamed_conversations:,} not in the anchor" if verdict.unnamed_conversations else ""
    note(
        console,
        f"{verdict.source}, made {verdict.made_at} on {verdict.site}: "
        f"{counted(verdict.conversations, 'conversation')}{unnamed}, {counted(verdict.messages, 'message')}, "
        f"{counted(verdict.acts, 'act')}: {'as anchored' if verdict.is_clean else 'differences found'}.",
    )
    note(console, _signed_by(verdict.public_key, is_trusted=verdict.key_is_trusted))


@show_one.register
def _(key: PublicKey, console: Console) -> None:
    console.print(key.public_key, soft_wrap=True)
    console.print(key.pem, end="")
    note(console, f"The private key is in {key.key_file}.")


def _show_more_findings(count: int, console: Console) -> None:
    if count > 0:
        note(console, f"and {counted(count, 'more finding')}")


def _signed_by(public_key: str, *, is_trusted: bool) -> str:
    """What the signature proves, as a sentence."""
    if is_trusted:
        return f"Signed with the trusted key {public_key}."
    return (
        f"Signed with the key {public_key}, which comes from the anchor itself: this proves only what the holder of "
        "that key signed. Give the key you trust with --public-key."
    )
