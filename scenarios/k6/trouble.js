// A step that did not do what it is for; `kind` is a name of errors.json.

export class Trouble extends Error {
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}
