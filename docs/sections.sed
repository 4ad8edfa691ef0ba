# The closing parts of a documentation comment ("Errors: ...", "Cancellation: ...") as sections of
# their own in the reference: the parameter or result before them would swallow them. A line stays
# one line, so that warnings name the right one; the commands are ALIASES of the Doxyfile.
s|^( */// )Errors, as |\1@section_errors as |
s|^( */// )Errors?: |\1@section_errors |
s|^( */// )Cancellation: |\1@section_cancellation |
s|^( */// )Cancellation, of any type: |\1@section_cancellation of any type: |
s|^( */// )Executor: |\1@section_executor |
s|^( */// )Thread-safety: |\1@section_threads |
