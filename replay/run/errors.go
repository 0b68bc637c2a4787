package run

// UsageError is a mistake in what was asked: a flag, a format, a file. Its text is one sentence with the remedy.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }
func (e UsageError) Unwrap() error { return e.Err }

// AnswerNo ends a command that ran as asked, and whose answer is no.
type AnswerNo struct{ Err error }

func (e AnswerNo) Error() string { return e.Err.Error() }
func (e AnswerNo) Unwrap() error { return e.Err }
