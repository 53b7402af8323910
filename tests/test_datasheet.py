"""Finding a product by the name its driver gives it."""

import pytest

from gym_kernel.evaluator.datasheet import lookup


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("NVIDIA H200", "H200"),
        ("nvidia h200", "H200"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 SXM5 80GB", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB SXM"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB SXM"),
        ("A100-SXM4-40GB", "A100 40GB SXM"),
        ("NVIDIA A100 80GB PCIe", "A100 80GB PCIe"),
        ("NVIDIA A100-PCIE-40GB", "A100 40GB PCIe"),
        ("NVIDIA B200", "B200"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA GeForce RTX 4090", "GeForce RTX 4090"),
    ],
)
def test_driver_names_find_their_product(name, product):
    assert lookup(name).product == product


@pytest.mark.parametrize(
    "name",
    [
        "",
        "AMD EPYC 9654",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA L40",
        "NVIDIA GB200",
        "NVIDIA GH200 480GB",
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
        "Tesla T4",
    ],
)
def test_other_products_are_not_guessed(name):
    assert lookup(name) is None


@pytest.mark.parametrize("name", ["NVIDIA H200", "NVIDIA B200", "NVIDIA A100-SXM4-80GB", "NVIDIA L40S"])
def test_rates_rise_as_precision_falls(name):
    rates = lookup(name).flops_per_s
    assert rates["float64"] <= rates["float32"] < rates["tf32"] < rates["float16"] == rates["bfloat16"]
    assert rates["float16"] < rates.get("float8", float("inf"))
