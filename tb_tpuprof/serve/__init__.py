"""The plugin within TensorBoard: routes, responses and the bundled frontend. The only package that imports
TensorBoard and werkzeug.
"""
