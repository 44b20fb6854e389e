"""Verifies a ledger by docs/ledger.md alone, with nothing but Python: `python3 verifier.py FILE`.

It says that everything holds, with the last line_hash, and ends with 0; or what does not, and ends with 1. With an
anchor (`python3 verifier.py FILE ANCHOR`) the chains must be those that it names; `openssl` verifies its signature.
"""

import base64
import hashlib
import json
import sys
from datetime import datetime, timedelta
from pathlib import Path

EPOCH, CROCKFORD = datetime(1970, 1, 1), str.maketrans("JKMNPQRSTVWXYZ", "IJKLMNOPQRSTUV")
unhex, canonical = bytes.fromhex, json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
as_given, PLACE = json.JSONEncoder(separators=(",", ":")).encode, ("part_ordinal", "field", "start_at", "length")


def sha(*pieces):
    encoded = (each.encode("utf-8", "surrogatepass") if isinstance(each, str) else each for each in pieces)
    return hashlib.sha256(b"".join(encoded)).hexdigest()


def part_hash(part):
    values = {name: part[name] for name in part if name not in ("type", "seq", "ordinal", "part_hash", "line_hash")}
    values |= {"step_cost": cost.rstrip("0").rstrip(".")} if "." in (cost := values.get("step_cost", "")) else {}
    return sha(canonical(values))


def record_hash(line):
    held = [line["metadata"], *([part.get("tool_input"), part.get("metadata")] for part in line["parts"])]
    keys = sha(as_given(held)) if as_given(held) != canonical(held) else None
    values = {name: line[name] for name in ("idempotency_key", "token_count", "token_counter")}
    values |= {"keys": keys, "files": line["files"] or None}
    return sha(canonical({name: value for name, value in values.items() if value is not None}))


def stands_there(line, file_id, sha256, ordinal, field, start, length):
    text = (line if ordinal is None else line["parts"][ordinal])[field]
    if field == "file_url":
        return text == file_id
    element = text[start : start + length]
    opening, closed = element.partition(">")[0], element.find("</large_file>") + len("</large_file>")
    return opening.startswith(f'<large_file id="{file_id}" ') and f' sha256="{sha256}"' in opening and closed == length


def hash_of(source):
    return source.get("content_hash") or source["summary_hash"]


def reached(known, sources):
    seqs = [each for each in sources if isinstance(each, int)]
    below = (known[each] for each in sources if not isinstance(each, int))
    return seqs + [seq for each in below for seq in reached(known, each["source_seqs"] + each["source_ids"])]


def path_to(head, moves):
    seqs, last = [], head
    for _, at_seq, head_seq in reversed(moves):
        if at_seq <= last:
            seqs, last = [*range(at_seq, last + 1), *seqs], head_seq
    return [*range(1, last + 1), *seqs]


def heads_in(anchor):
    lines = [json.loads(line) for line in anchor]
    return {(line["workspace"], line["session_id"]): line for line in lines if line["type"] == "conversation"}


def verify(file, previous="", heads=None):
    workspace, compared, anchored, parents = "", 0, {}, {}
    for number, raw in enumerate(file, start=1):
        line, body = json.loads(raw), raw.rpartition(b',"line_hash":"')[0]
        kind, previous = line["type"], sha(previous, body)
        assert raw == body + f',"line_hash":"{previous}"}}\n'.encode(), f"line {number}"
        if kind == "header":
            assert (line["format"], line["version"], line["hash"]) == ("lcm-ledger", 2, "sha256"), "another version"
            workspace = line["workspace"]
        elif kind == "conversation":
            anchored = (heads or {}).get((workspace, line["session_id"]), {})
            assert not anchored or anchored["created_at"] == line["created_at"], "anchor: another beginning"
            known, newest, recorded, chain, tokens, files, first = {}, 0, "", "", 0, {}, number
            keys, runs, newer, sessions, moves = set(), set(), {}, [], []
            needed, references = [], []
        elif kind == "message":
            hashes = [part["part_hash"] for part in line["parts"]]
            assert (line["seq"], line["chained_parts"]) == (newest := newest + 1, len(hashes)), "seq or parts"
            if not line["erased"]:
                sealed = sha(line["content"]), sha(canonical(line["metadata"])) if line["metadata"] else None
                assert sealed == (line["content_hash"], line["metadata_hash"]), "content or metadata"
                entry = sha(f"{line['role']}\n{line['author'] or ''}\n", *map(unhex, [sealed[0], *hashes]))
                assert (entry, hashes) == (line["entry_hash"], list(map(part_hash, line["parts"]))), "entry or parts"
                assert line["record_hash"] in (None, record_hash(line)), "record"
                assert all(stands_there(line, *each) for each in line["files"]), "what stands for a file"
            needed += [[newest, *each] for each in line["files"]]
            times = [datetime.fromisoformat(line[each][:-1]) - EPOCH for each in ("created_at", "recorded_at")]
            sealed = [(time // timedelta(microseconds=1)).to_bytes(8, "big", signed=True) for time in times]
            sealed += [unhex(line["metadata_hash"] or "")]
            sealed += [b"record:" + unhex(line["record_hash"])] if line["record_hash"] else []
            chain = sha(unhex(chain), unhex(line["entry_hash"]), *sealed)
            ulid = times[1] // timedelta(milliseconds=1) << 80 | int(chain[:20], 16)
            assert (chain, ulid) == (line["chain_hash"], int(line["event_id"].translate(CROCKFORD), 32)), "chain"
            assert newest != anchored.get("messages") or chain == anchored["chain_head"], "anchor: another history"
            assert recorded <= (recorded := line["recorded_at"]), "time goes back"
            assert (key := line["idempotency_key"]) is None or (key not in keys and not keys.add(key)), "key"
            known[newest], tokens = line, tokens + line["token_count"]
        elif kind == "part":
            assert known[line["seq"]]["erased"] or part_hash(line) == line["part_hash"], "part"
        elif kind == "head_move":
            moved, before, _ = moves[-1] if moves else (0, 1, 0)
            assert line["number"] == moved + 1 and before <= line["at_seq"] <= newest + 1, "move"
            assert line["head_seq"] < line["at_seq"], "move"
            first, _ = first + 1, moves.append((line["number"], line["at_seq"], line["head_seq"]))
        elif kind == "journal":
            assert line["erased"] or sha(as_given(line["entry"])) == line["entry_hash"], "journal"
            first += 1
        elif kind == "summary":
            hashes = ",".join(hash_of(known[each]) for each in line["source_seqs"] + line["source_ids"])
            assert line["erased"] or sha(hashes, "|", line["content"]) == line["summary_hash"], "summary"
            for each in (line["source_seqs"], line["source_ids"]):
                assert len(each) == len(set(each)), "one source twice"
            if (older := line["supersedes_id"]) is not None:
                assert newer.setdefault(older, line["summary_id"]) == line["summary_id"], "superseded twice"
            known[line["summary_id"]] = line
        elif kind == "session_summary":
            hashes = ",".join(hash_of(known[each]) for each in line["sources"])
            assert line["erased"] or sha(hashes, "|", line["content"]) == line["summary_hash"], "session summary"
            older, sessions = sessions[-1:], [*sessions, line]
            assert [line["supersedes_id"]] == ([each["summary_id"] for each in older] or [None]), "superseded"
            assert bool(line["content"]) is not line["erased"], "session summary"
            assert 0 < len(set(line["sources"])) == len(line["sources"]), "session summary"
        elif kind == "run":
            assert line["run_id"] not in runs and not runs.add(line["run_id"]), "a run twice"
            assert line["tokens_after"] >= 0 and line["tokens_before"] >= 0, "run"
            assert line["redone_summaries"] or line["tokens_after"] <= line["tokens_before"], "run"
        elif kind == "file":
            assert line["bytes"] != "missing", "bytes"
            files[line["file_id"]] = line, (digest := hashlib.sha256())
        elif kind == "bytes":
            first, _ = first + 1, digest.update(base64.b64decode(line["base64"]))
        elif kind == "reference":
            # A file that is only named may be one of another conversation.
            own = files[line["file_id"]][0] if line["field"] != "file_url" or line["file_id"] in files else None
            sha256 = own["content_hash"] if own else needed[len(references)][2]
            references.append([line["seq"], line["file_id"], sha256, *(line[name] for name in PLACE)])
        elif kind == "end":
            for each in newer:
                path = set()
                while each in newer:
                    assert each not in path and not path.add(each), "a summary supersedes itself"
                    each = newer[each]
            for each in sessions:
                assert each["project"] in (None, line.get("project")), "project"
            for each in sessions[-1:]:
                assert sorted(reached(known, each["sources"])) == path_to(each["last_seq"], moves), "reached"
            parent, link = line.get("parent_session_id"), line.get("parent_link")
            assert (parent is None) == (link is None) and parent != line["session_id"], "parent"
            parents[line["session_id"]] = parent
            assert line["updated_at"] >= recorded, "time goes back"
            assert newest >= anchored.get("messages", 0), "anchor: messages are missing"
            compared += bool(anchored)
            counted = newest, chain, tokens, number - first - 1
            said = line["message_count"], line["chain_head"] or "", line["total_tokens"], sum(line["counts"].values())
            held = all(
                file["content_hash"] == hash.hexdigest() for file, hash in files.values() if file["bytes"] == "inline"
            )
            assert (said, held, references) == (counted, True, needed), "end"
    for each in list(parents):
        path = set()
        while (each := parents.get(each)) is not None:
            assert each not in path and not path.add(each), "parent"
    assert kind == "trailer" and line["lines"] == number, "the end is missing"
    assert heads is None or compared, "anchor: it names no conversation of this ledger"
    return previous


if __name__ == "__main__":
    # Without assertions, as with `python -O`, anything would hold.
    if len(sys.argv) not in (2, 3) or not __debug__:
        sys.exit("Say which ledger, and without -O: python3 verifier.py FILE [ANCHOR]")
    try:
        heads = heads_in(Path(sys.argv[2]).read_bytes().splitlines()) if len(sys.argv) == 3 else None
        with Path(sys.argv[1]).open("rb") as ledger:
            print("Everything holds. The last line_hash is", verify(ledger, heads=heads))
    except Exception as wrong:
        sys.exit(f"Not everything holds: {wrong!r}")
