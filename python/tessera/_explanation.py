# SPDX-License-Identifier: Apache-2.0
"""What Plan.explain returns."""


class Explanation(str):
    """The explanation of a plan: a text that is drawn where it is shown in a notebook."""

    def __new__(cls, text, plan):
        self = super().__new__(cls, text)
        self._plan = plan
        return self

    def _repr_html_(self):
        # In a frame of its own, so that the page's style stays its own.
        import html
        return (f'<iframe srcdoc="{html.escape(self._plan.page())}" '
                'style="width:100%;height:640px;border:0"></iframe>')

    def __repr__(self):
        return str(self)
