// A step that failed; `kind` is a name of errors.json.

export class Trouble extends Error {
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}
