"""What is wrong with a model or a request, in one line for people."""


class ExportError(Exception):
    pass
