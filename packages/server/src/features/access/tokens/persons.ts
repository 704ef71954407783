import type { PersonRow } from './store.ts';

interface Holder {
  readonly id: string;
  readonly person?: string | undefined;
}

/** The principals of persons and of tokens without one. */
export class Persons {
  readonly #byName = new Map<string, string>();
  readonly #taken = new Set<string>();

  load(rows: readonly PersonRow[]): void {
    for (const { name, principalId } of rows) {
      this.#byName.set(name, principalId);
      this.#taken.add(principalId);
    }
  }

  /**
   * Returns rows for the persons of these tokens that do not exist yet. The first token of a person that was in use before passes on what it
   * owns: its principal becomes that of the person.
   */
  missing(holders: readonly Holder[], wasUsed: (tokenId: string) => boolean): PersonRow[] {
    const rows = new Map<string, PersonRow>();
    for (const { id, person } of holders) {
      if (person === undefined || this.#byName.has(person)) continue;
      const own = `token:${id}`;
      const isPassedOn = wasUsed(id) && !this.#taken.has(own);
      if (isPassedOn && rows.get(person)?.principalId.startsWith('token:') !== true) rows.set(person, { name: person, principalId: own });
      else if (!rows.has(person)) rows.set(person, { name: person, principalId: `person:${person}` });
    }
    return [...rows.values()];
  }

  /** Returns the owner of what comes through a token. A token that passed on what it owned starts again with nothing when it leaves its person. */
  principalOf({ id, person }: Holder): string {
    if (person !== undefined) return this.#byName.get(person) ?? `person:${person}`;
    const own = `token:${id}`;
    return this.#taken.has(own) ? `${own}~` : own;
  }
}
