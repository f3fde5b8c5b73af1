"""Vector code (form 5) becomes target code (form 6): only the ops and dtypes that the target has.

What a renderer may rely on in form 6:

- No `dtypes.index`: every integer has a width.
- IDIV and MOD are on integers that are not negative (unsigned, or so by construction), and the divisor is
  not 0: rounding down and C's rounding to zero agree, and nothing traps.
- SHR keeps the sign of a signed number. Amounts of SHL and SHR are from 0 to width - 1.
- No CAST to bool (it is CMPNE with 0) and no arithmetic on bools but AND, OR, XOR, CMPEQ, CMPNE and WHERE.
- CAST float → integer is of a value in range, unless the renderer says that its CAST saturates.
- MULACC is rounded once (`fma`); no other product and sum may be contracted.
- bfloat16 and the fp8s, and half where the target lacks it, are read and written as integers (emulate.py).
  No CAST is from or to half but of float32.

What legalizing asks of a renderer, `renderer.supports(op, dtype)`, with the scalar dtype of the operands:

- any elementwise op but CAST: it means on every input what `ir.ops` says. MAX and MIN give NaN if either is
  NaN and the first of equals, EXP and its like are within BOUNDS;
- (Ops.CAST, integer type): CAST from float to it saturates and sends NaN to 0;
- (Ops.LOAD, float type): the type can be loaded, stored, and cast from and to float32;
- (Ops.ADD, float type): arithmetic on it works, each result rounded to it.
"""
