/** One figure per round and name; a goal of budgets.json names the one that it judges. */
export class Measures {
  readonly #rounds = new Map<string, number[]>();

  add(name: string, ...values: readonly number[]): void {
    const sane = values.filter((value) => Number.isFinite(value));
    if (sane.length > 0) this.#rounds.set(name, [...(this.#rounds.get(name) ?? []), ...sane]);
  }

  get(name: string): readonly number[] {
    return this.#rounds.get(name) ?? [];
  }

  toJSON(): Record<string, number[]> {
    return Object.fromEntries(this.#rounds);
  }
}
