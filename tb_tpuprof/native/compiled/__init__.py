"""The inner loops in Cython's pure-Python mode, compiled to C. Import them from `tb_tpuprof.native`; each has
a twin in `native/plain/`.
"""
