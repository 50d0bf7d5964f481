"""How far two ways to the same number may lie apart in a test, and why so far.

Which of two equal sums is rounded up depends on the processor, its number of threads and the
library that adds: a bound that is as tight as one machine happens to be fails on the next. Each
bound here is some ten times what rounding comes to for numbers up to about ten; a mistake in a
formula is larger than any of them by orders of magnitude. Numbers that grow larger take the bound
times their size. Where two whole models are compared, both run in 64 bits, so that no processor's
rounding comes near the bound.
"""

from __future__ import annotations

# 64 bits, eps 1e-16: a formula of few steps, or sums of up to a thousand terms of size one.
DOUBLE = 1e-12
# 64 bits: iterations, eigenvectors, differences of large numbers and whole models, which lose up to
# half of their 16 digits.
DOUBLE_LONG = 1e-8
# 32 bits, eps 6e-8: one number stored, copied or rounded once, or a mean of few of them.
STORED = 1e-6
# 32 bits: sums of up to a thousand products (a dot product, a projection, a LayerNorm, a softmax's
# row): eps x sqrt(1000) x 10 is 2e-5 at worst, and a fifth of it as sums go; three layers of tests'
# tiny models stay within it too.
SUMMED = 2e-5
# 32 bits through many layers, or through a readout over a vocabulary: each layer's rounding is
# carried on and added to.
PASSED = 2e-4
# A total of numbers up to a hundred in 32 bits: a logit summed up from all parts of a model,
# log-probabilities of a whole text.
TOTAL = 1e-3
# What four, three and two decimals on screen leave open: half of the last, and the rounding of the
# number itself.
FOUR_DECIMALS = 6e-5
THREE_DECIMALS = 6e-4
TWO_DECIMALS = 6e-3
# An angle in degrees out of 32-bit vectors: near 0 the arc cosine turns a rounding of 1e-8 into a
# hundredth.
DEGREES = 0.01
# What differs by less is 0 for every purpose.
TINY = 1e-30
# A number from 0 to 1 in a byte, its square root coded: half of 1/255, times the slope 2 of the
# square. Twice that for a difference with its sign, which has 127 levels either way.
CODED, CODED_SIGNED = 0.004, 0.009
# A whole model against code that computes its norms, its angles and its softmax in 32 bits whatever
# the rest is computed in, as transformers does in the families of today: rounding (eps 6e-8) of
# numbers up to about ten, carried on through a few layers.
PARITY = 1e-5
# Where a number is not computed twice but drawn at random, or measured with steps of finite size,
# the bound stands beside its reason in the test. Without a bound `approx` takes 1e-6 and
# `assert_allclose` 1e-7 of the number: for what is computed in 64 bits, or copied.
