import type { Live } from '../../../kernel/config/live.ts';
import type { BudgetOwners } from '../budgets/api.ts';
import type { PersonsConfig } from './config.ts';
import type { RequestLimit } from './api.ts';
import type { TokenRegistry } from './registry.ts';

type Budgets = NonNullable<ReturnType<BudgetOwners['budgetsOf']>>;

/** What persons, and tokens, may use: budgets by principal, and limits of requests. */
export class Owners implements BudgetOwners {
  readonly #registry: TokenRegistry;
  readonly #persons: Live<PersonsConfig>;
  readonly #listeners = new Set<() => Promise<void>>();
  #budgets: ReadonlyMap<string, Budgets> = new Map();

  constructor(registry: TokenRegistry, persons: Live<PersonsConfig>) {
    this.#registry = registry;
    this.#persons = persons;
  }

  budgetsOf(principalId: string): Budgets | undefined {
    return this.#budgets.get(principalId);
  }

  withBudgets(): readonly string[] {
    return [...this.#budgets.keys()];
  }

  onChange(run: () => Promise<void>): Disposable {
    this.#listeners.add(run);
    return { [Symbol.dispose]: () => void this.#listeners.delete(run) };
  }

  /** Returns the limits that a request of this token counts for: its own, and that of its person. */
  requestLimits(tokenId: string): readonly RequestLimit[] {
    const limits: RequestLimit[] = [];
    const { rateLimit: own, person } = this.#registry.find(tokenId) ?? {};
    if (own !== undefined) limits.push({ name: tokenKey(tokenId, 'rateLimit'), limit: own });
    const shared = person === undefined ? undefined : this.#persons.current[person]?.rateLimit;
    if (shared !== undefined) limits.push({ name: `persons.${person}.rateLimit`, limit: shared });
    return limits;
  }

  /** Returns the principal of a person, with tokens or without. */
  principalOfPerson(name: string): string {
    return this.#registry.persons.principalOf({ id: '', person: name });
  }

  /** Called when tokens or persons have changed; returns when those who follow the budgets are done. */
  async refresh(): Promise<void> {
    const { persons } = this.#registry;
    const found = new Map<string, Budgets>();
    for (const [name, { budgets }] of Object.entries(this.#persons.current))
      if (budgets !== undefined)
        found.set(persons.principalOf({ id: '', person: name }), { kind: 'person', name: `persons.${name}.budgets`, budgets });
    for (const record of this.#registry.list())
      if (record.person === undefined && record.budgets !== undefined)
        found.set(persons.principalOf(record), { kind: 'token', name: tokenKey(record.id, 'budgets'), budgets: record.budgets });
    this.#budgets = found;
    for (const run of this.#listeners) await run();
  }
}

function tokenKey(tokenId: string, key: string): string {
  return `gateway.tokens.${tokenId}.${key}`;
}
