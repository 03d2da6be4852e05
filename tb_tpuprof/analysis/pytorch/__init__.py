"""PyTorch's operators: the FLOPs and bytes of one call from the inputs that Kineto records.

`inputs` reads the recorded inputs, `products` and `moves` hold the formulas, `work` chooses among them, and
`kernels` divides an operator's work among the kernels that it launched. Start with `kernels.kernel_work`.
"""
