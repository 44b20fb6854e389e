"""Show integrity reports, repair plans, ledgers and anchors on a terminal."""

from __future__ import annotations

from conversations.humanize import counted
from conversations.ledger.types import LedgerReport
from integrity.anchors.types import AnchorVerdict, PublicKey
from integrity.types import IntegrityReport, IntegrityState, PlanState, RepairPlanRecord, ReportPage, StepRecord
from lcmsite.cli.terminal_layout import Screen, cell, show_one


@show_one.register
def _(report: IntegrityReport, screen: Screen) -> None:
    for result in report.invariants:
        verdict = (f"{counted(result.count, 'finding')} ", "bold red") if result.count else ("holds ", "green")
        screen.line(verdict, (f"{result.code}: ", "bold"), result.sentence)
        for finding in result.findings:
            screen.line(f"    {finding.id}: {finding.detail}")
    if report.unchecked:
        names = ", ".join(map(str, report.unchecked))
        screen.line(f"Not checked, because it took too long: conversation {names}.", style="bold red")
    where = "" if report.conversation_id is not None else f" in workspace {screen.workspace()}"
    screen.note(
        f"{counted(report.conversations_checked, 'conversation')} and "
        f"{counted(report.messages_checked, 'message')} checked{where}: "
        f"{'everything holds' if report.is_clean else 'not everything holds'}. The report is {report.report_id}."
    )
    if report.repair_id:
        screen.note(f"The repair plan: {screen.command(f'repairs {report.repair_id}')}")
    elif not report.is_clean:
        screen.note(f"To plan repairs: {screen.command(f'plan-repairs {report.report_id}')}")


@show_one.register
def _(state: IntegrityState, screen: Screen) -> None:
    screen.fields(state)
    if state.newest_report_id is not None:
        screen.note("The finding count and the newest report id are those of the newest check of everything.")
    if state.conversations_with_findings and not state.finding_count:
        screen.note("Checks of single conversations have found more since then: `lcm reports` lists them.")


@show_one.register
def _(page: ReportPage, screen: Screen) -> None:
    show_one(page.report, screen)
    if page.findings:
        screen.table(page.findings)
    if page.next_cursor is not None:
        screen.note(f"There is more: the same again with --cursor={page.next_cursor}")


@show_one.register
def _(plan: RepairPlanRecord, screen: Screen) -> None:
    screen.heading(f"repair plan, {plan.state}", plan.repair_id, f"of {plan.report_id}", cell(plan.created_at))
    for step in plan.steps:
        _show_step(step, screen)
    for each in plan.unplanned:
        screen.line((f"      {each.id} ", "bold"), f"{each.code}: {each.why}")
    if plan.state is PlanState.UNDONE:
        screen.note(f"  undone at {cell(plan.undone_at)}: all values are as before the repair")
    else:
        for name, value in plan.outcome.items():
            screen.note(f"  {name}: {cell(value, longest=None)}")
    if not plan.steps and not plan.unplanned:
        screen.note("  There is nothing to repair.")
    if plan.state is PlanState.PROPOSED and plan.steps:
        ordinals = ",".join(str(step.ordinal) for step in plan.steps)
        screen.note(f"To approve these steps: {screen.command(f'approve-repairs {plan.repair_id} {ordinals}')}")
    if plan.state is PlanState.APPROVED:
        screen.note(f"To apply the approved steps: {screen.command(f'apply-repairs {plan.repair_id}')}")


def _show_step(step: StepRecord, screen: Screen) -> None:
    where = "" if step.conversation_id is None else f" in conversation {step.conversation_id}"
    approved = f", by {step.approved_by}" if step.approved_by else ""
    lasting = "" if step.reversible else ", cannot be undone"
    screen.line(
        (f"{step.ordinal:>4}  ", "dim"),
        (f"{step.operation} {step.target}", "bold"),
        f"{where}: {step.state}{approved}; risk {step.risk}{lasting}",
    )
    screen.note(f"      {step.why}")
    screen.note(f"      {cell(step.before, longest=None)} -> {cell(step.after, longest=None)}")


@show_one.register
def _(report: LedgerReport, screen: Screen) -> None:
    for finding in report.findings:
        # A finding without a line is about the anchor.
        where = f"line {finding.line}: " if finding.line else ""
        screen.line(f"{where}{finding.detail} [{finding.code}]")
    _show_more_findings(report.finding_count - len(report.findings), screen)
    screen.note(
        f"{report.source}: {counted(report.lines, 'line')}, {counted(report.conversations, 'conversation')}, "
        f"{counted(report.counts.messages, 'message')}, "
        f"{counted(report.counts.summaries, 'summary')}: "
        f"{'everything holds' if report.is_clean else 'not everything holds'}."
    )
    screen.note(f"The last line_hash is {report.line_hash or 'none'}.")
    if report.anchor is not None:
        anchor = report.anchor
        unnamed = f", {anchor.unnamed_conversations:,} not in the anchor" if anchor.unnamed_conversations else ""
        screen.note(
            f"Compared with the anchor of {anchor.made_at} from {anchor.site}: "
            f"{counted(anchor.conversations, 'conversation')}{unnamed}. "
            + _signed_by(anchor.public_key, is_trusted=anchor.key_is_trusted)
        )


@show_one.register
def _(verdict: AnchorVerdict, screen: Screen) -> None:
    for finding in verdict.findings:
        screen.line(f"{finding.id}: {finding.detail} [{finding.code}]")
    _show_more_findings(verdict.finding_count - len(verdict.findings), screen)
    unnamed = f" and {verdict.unnamed_conversations:,} not in the anchor" if verdict.unnamed_conversations else ""
    screen.note(
        f"{verdict.source}, made {verdict.made_at} on {verdict.site}: "
        f"{counted(verdict.conversations, 'conversation')}{unnamed}, {counted(verdict.messages, 'message')}, "
        f"{counted(verdict.acts, 'audited operation')}: {'as anchored' if verdict.is_clean else 'differences found'}."
    )
    screen.note(_signed_by(verdict.public_key, is_trusted=verdict.key_is_trusted))


@show_one.register
def _(key: PublicKey, screen: Screen) -> None:
    screen.line(key.public_key)
    screen.line(key.pem, end="")
    screen.note(f"The private key is in {key.key_file}.")


def _show_more_findings(count: int, screen: Screen) -> None:
    if count > 0:
        screen.note(f"and {counted(count, 'more finding')}")


def _signed_by(public_key: str, *, is_trusted: bool) -> str:
    """A sentence that says what the signature proves."""
    if is_trusted:
        return f"Signed with the trusted key {public_key}."
    return (
        f"Signed with the key {public_key}, which comes from the anchor itself: this proves only what the holder of "
        "that key signed. Give the key you trust with --public-key."
    )
