/**
 * Refers to a part that is built later: parts that call each other in a circle cannot all be built first. Composition sets each one
 * before anything runs, so reading it too early is a mistake in the order of construction.
 */
export class Late<Part> {
  readonly #name: string;
  #part: { readonly value: Part } | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  get value(): Part {
    if (this.#part === undefined) throw new Error(`${this.#name} is used before it is built`);
    return this.#part.value;
  }

  set(value: Part): Part {
    this.#part = { value };
    return value;
  }
}
