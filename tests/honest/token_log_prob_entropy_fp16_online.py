"""Log-probability and entropy in one pass: the sum of exp(x - m) (x - m) is rescaled as the maximum grows.

Style: online entropy
Task: token_log_prob_entropy_fp16
Device: any
"""

import torch
import triton
import triton.language as tl


@triton.jit
def entropy_kernel(x_ptr, chosen_ptr, p_ptr, h_ptr, vocabulary, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * vocabulary
    m = tl.load(x_ptr).to(tl.float32)
    s = 0.0
    t = 0.0
    for start in range(0, vocabulary, BLOCK):
        c = start + tl.arange(0, BLOCK)
        inside = c < vocabulary
        x = tl.load(x_ptr + c, mask=inside, other=-60000.0).to(tl.float32)
        new = tl.maximum(m, tl.max(tl.where(inside, x, m), axis=0))
        shrink = tl.exp(m - new)
        t = (t + s * (m - new)) * shrink
        s = s * shrink
        d = tl.where(inside, x - new, 0.0)
        e = tl.where(inside, tl.exp(d), 0.0)
        s += tl.sum(e, axis=0)
        t += tl.sum(e * d, axis=0)
        m = new
    log_s = tl.log(s)
    chosen = tl.load(x_ptr + tl.load(chosen_ptr + row)).to(tl.float32)
    tl.store(p_ptr + row, (chosen - m - log_s).to(tl.float16))
    tl.store(h_ptr + row, (log_s - t / s).to(tl.float16))


class ModelNew(torch.nn.Module):
    def forward(self, logits, chosen):
        tokens, vocabulary = logits.shape
        log_p, entropy = logits.new_empty(tokens), logits.new_empty(tokens)
        entropy_kernel[(tokens,)](logits, chosen, log_p, entropy, vocabulary, BLOCK=4096, num_warps=8)
        return log_p, entropy
