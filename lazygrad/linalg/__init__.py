"""`torch.linalg` on lazygrad's Tensors: the same functions, with the same arguments.

Most are methods of Tensor, taken as functions. In the files beside this one are those that no method is, and
those whose defaults differ from the method's.
"""

from ..tensor import Tensor
from ..tensor.as_functions import function_of
from ..tensor.trace import check_functions
from .eigenvalues import eig as eig
from .eigenvalues import eigvals as eigvals
from .factors import lu_factor_ex as lu_factor_ex
from .factors import lu_solve as lu_solve
from .factors import lu_unpack as lu_unpack
from .forms import diagonal as diagonal
from .forms import householder_product as householder_product
from .forms import lstsq as lstsq
from .forms import matrix_rank as matrix_rank
from .forms import multi_dot as multi_dot
from .forms import norm as norm
from .forms import pinv as pinv
from .forms import svdvals as svdvals
from .forms import tensorinv as tensorinv
from .forms import tensorsolve as tensorsolve
from .forms import vander as vander
from .symmetric import ldl_factor as ldl_factor
from .symmetric import ldl_factor_ex as ldl_factor_ex
from .symmetric import ldl_solve as ldl_solve

cholesky = function_of(Tensor.cholesky)
cholesky_ex = function_of(Tensor.cholesky_ex)
cond = function_of(Tensor.cond, "A")
cross = function_of(Tensor.cross)
det = function_of(Tensor.det, "A")
eigh = function_of(Tensor.eigh, "A")
eigvalsh = function_of(Tensor.eigvalsh, "A")
inv = function_of(Tensor.inv, "A")
inv_ex = function_of(Tensor.inv_ex, "A")
lu = function_of(Tensor.lu, "A")
lu_factor = function_of(Tensor.lu_factor, "A")
matmul = function_of(Tensor.matmul)
matrix_exp = function_of(Tensor.matrix_exp, "A")
matrix_norm = function_of(Tensor.matrix_norm, "A")
matrix_power = function_of(Tensor.matrix_power, "A")
qr = function_of(Tensor.qr, "A")
slogdet = function_of(Tensor.slogdet, "A")
solve = function_of(Tensor.solve, "A")
solve_ex = function_of(Tensor.solve_ex, "A")
solve_triangular = function_of(Tensor.solve_triangular, "A")
svd = function_of(Tensor.svd, "A")
vecdot = function_of(Tensor.vecdot, "x", y="other")
vector_norm = function_of(Tensor.vector_norm, "x")

check_functions(globals())
