"""Reports of checks and plans of repairs, for people."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from conversations.humanize import counted
from integrity.types import IntegrityReport, RepairPlanRecord, ReportPage, StepRecord
from lcmsite.cli.terminal_layout import body, cell, heading, safe, table


def report(report: IntegrityReport, console: Console) -> None:
    for result in report.invariants:
        found = f"{counted(result.count, 'finding')} "
        verdict = Text(found, "bold red") if result.count else Text("holds ", "green")
        console.print(Text.assemble(verdict, (f"{result.code}: ", "bold"), result.sentence), soft_wrap=True)
        for finding in result.findings:
            body(console, f"    {finding.id}: {finding.detail}", end="")
    if report.unchecked:
        names = ", ".join(map(str, report.unchecked))
        console.print(Text(f"Took too long, and was not looked through: conversation {names}.", "bold red"))
    conversations = counted(report.conversations_checked, "conversation")
    console.print(
        f"{conversations} and {counted(report.messages_checked, 'message')} checked: "
        f"{'everything holds' if report.is_clean else 'not everything holds'}. It is kept as {report.report_id}.",
        style="dim",
    )
    if report.repair_id:
        console.print(f"What could be done about it: lcm repairs {report.repair_id}", style="dim")
    elif not report.is_clean:
        console.print(f"To plan repairs: lcm plan-repairs {report.report_id}", style="dim")


def report_page(page: ReportPage, console: Console) -> None:
    report(page.report, console)
    if page.findings:
        console.print(table(page.findings))
    if page.next_cursor is not None:
        again = f"lcm report {page.report.report_id} --cursor={page.next_cursor}"
        console.print(f"There is more: {again}", soft_wrap=True, style="dim")


def repair_plan(plan: RepairPlanRecord, console: Console) -> None:
    heading(console, f"repair plan, {plan.state}", plan.repair_id, f"of {plan.report_id}", cell(plan.created_at))
    for step in plan.steps:
        _step(step, console)
    for each in plan.unplanned:
        console.print(Text.assemble((f"      {each.id} ", "bold"), safe(f"{each.code}: {each.why}")), soft_wrap=True)
    for name, value in plan.outcome.items():
        console.print(Text(safe(f"  {name}: {cell(value, longest=None)}"), "dim"), soft_wrap=True)
    if not plan.steps and not plan.unplanned:
        console.print("  Nothing is to be done.", style="dim")


def _step(step: StepRecord, console: Console) -> None:
    where = "" if step.conversation_id is None else f" in conversation {step.conversation_id}"
    approved = f", by {step.approved_by}" if step.approved_by else ""
    back = "" if step.reversible else ", cannot be taken back"
    console.print(
        Text.assemble(
            (f"{step.ordinal:>4}  ", "dim"),
            (safe(f"{step.operation} {step.target}"), "bold"),
            safe(f"{where}: {step.state}{approved}; risk {step.risk}{back}"),
        ),
        soft_wrap=True,
    )
    console.print(Text(safe(f"      {step.why}"), "dim"), soft_wrap=True)
    console.print(Text(safe(f"      {cell(step.before)} -> {cell(step.after)}"), "dim"), soft_wrap=True)
