"""winml export has at most as many nodes as PyTorch's export of the same checkpoint after onnxsim (tests/data/export-nodes.tsv)."""
import os

import onnx
import pytest

from conftest import ROOT
from exported import DATA, export, specs

with open(f"{ROOT}/tests/data/export-nodes.tsv") as f:
    ROWS = {line.split("\t")[0]: line.rstrip("\n").split("\t")[1:] for line in f if not line.startswith("#")}
KNOWN = sorted(name for name, row in ROWS.items() if row[0] != "-")


def count(graph):
    """Those of sub-graphs, too; Constant is an initializer by another name."""
    inner = sum(count(a.g) for n in graph.node for a in n.attribute if a.HasField("g"))
    return inner + sum(n.op_type != "Constant" for n in graph.node)


def test_rows_are_checkpoints():
    assert set(ROWS) <= set(os.listdir(DATA)) and len(KNOWN) > 140
    assert all(len(row) > 1 for row in ROWS.values() if row[0] == "-"), "a reason"


@pytest.mark.parametrize("name", KNOWN)
def test_nodes_are_no_more_than_pytorchs(winml, tmp_path, name):
    nodes, *more = ROWS[name]
    path = export(winml, name, tmp_path, "--opset", 17, "--input-specs", specs(name, tmp_path))
    own = count(onnx.load(path, load_external_data=False).graph)
    if more:  # with a reason, and exactly: a better graph takes the row's exception away
        assert len(more) == 2
        assert own == int(nodes) + int(more[0])
    else:
        assert own <= int(nodes)
