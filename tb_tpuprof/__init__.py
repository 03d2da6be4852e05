"""tb_tpuprof: turns captured XPlane profiles into answers, in TensorBoard's Profile tab and on the command
line.
"""

__version__ = "0.1.0"
