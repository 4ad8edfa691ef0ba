# The closing parts of a documentation comment ("Errors: ...", "Cancellation: ...") as sections of
# their own in the reference: they would be swallowed by the parameter or result before them. Each
# stays on its line, so that warnings name the right one; the commands are ALIASES of the Doxyfile.
\|^ *///| {
  s/(^ *\/\/\/ |[.;)] )(Error|Errors|Cancellation|Executor|Thread-safety): /\1@section_\2 /g
  s/(^ *\/\/\/ |[.;)] )Errors, as `boost::system::system_error`: /\1@section_Errors (as `boost::system::system_error`) /g
  s/(^ *\/\/\/ |[.;)] )(Error|Errors|Cancellation|Executor|Thread-safety):$/\1@section_\2/
  s/@section_Thread-safety/@section_Threads/
}
