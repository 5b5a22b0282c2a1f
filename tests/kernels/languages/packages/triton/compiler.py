class ASTSource:
    def __init__(self, fn, signature, constexprs, attrs):
        self.fn, self.signature, self.constexprs = fn, signature, constexprs
