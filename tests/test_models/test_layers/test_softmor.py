"""The recursion and its mixture against the formulas, written out step by step."""

import pytest
import torch
import torch.nn.functional as F

from mmsoftmor.errors import InputError
from mmsoftmor.models.layers import Router, TransformerLayer, recurse

DIM = 32


@pytest.fixture
def layer(randomize):
    return randomize(TransformerLayer(DIM, 2, 64), std=0.1)


@pytest.fixture
def tokens():
    return torch.randn(3, 10, DIM, generator=torch.Generator().manual_seed(1))


def make_router(randomize, depth, **options):
    """Return a router whose weights differ clearly between tokens and steps."""
    return randomize(Router(DIM, depth, **options), std=0.2)


def steps_of(layer, x, depth):
    """Return h_1 .. h_R."""
    outputs = []
    for _ in range(depth):
        x = layer(x)
        outputs.append(x)
    return outputs


def weights_of(router, x):
    """Return softmax(Linear(GELU(Linear(x)))), from the parameters alone."""
    hidden = F.gelu(F.linear(x, router.fc1.weight, router.fc1.bias))
    logits = F.linear(hidden, router.fc2.weight, router.fc2.bias)
    odds = (logits - logits.amax(-1, keepdim=True)).exp()
    return odds / odds.sum(-1, keepdim=True)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("depth", [2, 4])
def test_soft_mixture_equals_the_unrolled_sum(layer, tokens, randomize, depth, training):
    layer.train(training)
    router = make_router(randomize, depth)
    y = recurse(layer, tokens, depth, router(layer.ln1(tokens)))
    w = weights_of(router, layer.ln1(tokens))
    expected = sum(w[..., r, None] * h for r, h in enumerate(steps_of(layer, tokens, depth)))
    assert w.std(dim=1).min() > 0.01, "the weights must differ between tokens"
    torch.testing.assert_close(y, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("depth", [2, 4])
def test_soft_mixture_equals_the_unrolled_sum_under_bf16(layer, tokens, randomize, depth, training):
    layer.train(training)
    router = make_router(randomize, depth)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = recurse(layer, tokens, depth, router(layer.ln1(tokens)))
        outputs = steps_of(layer, tokens, depth)
    w = weights_of(router, layer.ln1(tokens))
    expected = sum(w[..., r, None] * h for r, h in enumerate(outputs))
    assert y.dtype == tokens.dtype
    torch.testing.assert_close(y, expected, rtol=0.02, atol=0.02)


def test_mean_and_last_equal_their_unrolled_forms(layer, tokens):
    outputs = steps_of(layer, tokens, 4)
    mean = recurse(layer, tokens, 4, torch.full((4,), 0.25))
    torch.testing.assert_close(mean, torch.stack(outputs).mean(0), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(recurse(layer, tokens, 4), outputs[-1], rtol=0, atol=0)


def test_all_mixings_agree_with_a_single_step(layer, tokens):
    expected = layer(tokens)
    for weights in (None, torch.ones(1), torch.ones(3, 10, 1)):
        torch.testing.assert_close(recurse(layer, tokens, 1, weights), expected, rtol=0, atol=0)


def test_no_more_than_the_running_sum_is_kept_without_gradients():
    """The mixture is streamed: an earlier step's output is freed as the next step appears."""
    import weakref

    alive = []

    def step(h):
        out = h + 1
        alive.append(weakref.ref(out))
        return out

    with torch.no_grad():
        recurse(step, torch.zeros(2, 3, 4), 5, torch.full((5,), 0.2))
    assert [ref() for ref in alive] == [None] * 5

    seen = []

    def counting_step(h):
        seen.append(sum(ref() is not None for ref in alive))
        return step(h)

    alive.clear()
    with torch.no_grad():
        recurse(counting_step, torch.zeros(2, 3, 4), 5, torch.full((5,), 0.2))
    assert max(seen) == 1, f"steps alive when each step began: {seen}"


def test_weights_sum_to_one_for_each_token_in_fp32_under_autocast(tokens, randomize):
    router = make_router(randomize, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        w = router(tokens)
    assert w.dtype == torch.float32
    assert w.shape == (3, 10, 4)
    assert (w > 0).all()
    torch.testing.assert_close(w.sum(-1), torch.ones(3, 10), rtol=0, atol=1e-6)


def test_softmax_of_the_router_reads_fp32_under_autocast(tokens, randomize, monkeypatch):
    router, seen = make_router(randomize, 4), []
    softmax = torch.Tensor.softmax

    def spy(self, *args, **kwargs):
        seen.append(self.dtype)
        return softmax(self, *args, **kwargs)

    monkeypatch.setattr(torch.Tensor, "softmax", spy)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        router(tokens)
    assert seen == [torch.float32]


def test_fewer_steps_renormalise_over_the_first_logits(tokens, randomize):
    router = make_router(randomize, 4)
    full = weights_of(router, tokens)
    for depth in (1, 2, 3, 4):
        expected = full[..., :depth] / full[..., :depth].sum(-1, keepdim=True)
        torch.testing.assert_close(router(tokens, depth), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("depth", [2, 3, 4, 8])
def test_uniform_init_gives_every_step_the_same_weight(tokens, depth):
    w = Router(DIM, depth)(tokens)
    torch.testing.assert_close(w, torch.full_like(w, 1 / depth), rtol=0, atol=1e-7)


@pytest.mark.parametrize("depth", [2, 3, 4, 8])
def test_first_init_gives_the_first_step_99_percent_at_any_depth(tokens, depth):
    w = Router(DIM, depth, init="first")(tokens)
    torch.testing.assert_close(w[..., 0], torch.full((3, 10), 0.99), rtol=0, atol=1e-6)
    rest = torch.full((3, 10, depth - 1), 0.01 / (depth - 1))
    torch.testing.assert_close(w[..., 1:], rest, rtol=1e-5, atol=0)


@pytest.mark.parametrize("init", ["uniform", "first"])
def test_router_learns_from_its_start(layer, tokens, init):
    """A zero last layer lets its own gradient through at once, and the first layer's next step."""
    router = Router(DIM, 4, init=init)
    optimizer = torch.optim.SGD(router.parameters(), lr=1.0)
    for step in range(2):
        optimizer.zero_grad()
        recurse(layer, tokens, 4, router(layer.ln1(tokens))).square().mean().backward()
        assert router.fc2.weight.grad.abs().max() > 0
        assert router.fc2.bias.grad.abs().max() > 0
        assert (router.fc1.weight.grad.abs().max() > 0) == (step == 1)
        optimizer.step()


def test_hidden_ratio_sets_the_hidden_width():
    assert Router(DIM, 4, hidden_ratio=0.25).fc1.weight.shape == (8, DIM)


@pytest.mark.parametrize(
    ("options", "named"),
    [(dict(init="zero"), "router.init='zero'"), (dict(hidden_ratio=0.01), "router.hidden_ratio")],
)
def test_bad_router_option_is_one_line_that_names_it(options, named):
    with pytest.raises(InputError, match=named) as error:
        Router(DIM, 4, **options)
    assert "\n" not in str(error.value)
