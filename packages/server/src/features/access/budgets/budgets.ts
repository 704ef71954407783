import type { CallingTurn, PartOfRoot } from '../../../kernel/call-context.ts';
import type { Live } from '../../../kernel/config/live.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { BudgetOwners, ModelWork, ReserveStore, TurnBudget, UsageAnswer, UsageQuery } from './api.ts';
import { Billing, type BillingDeps } from './usage/billing.ts';
import type { BudgetsConfig } from './config.ts';
import { Ledger, type TurnUse } from './limits/ledger.ts';
import { createBudgetMethods } from './methods.ts';
import { usageReport, usedByPrincipals, usedSince } from './store.ts';
import { LedgerBudget } from './limits/turn-budget.ts';
import { createModelWork, type WorkDeps } from './limits/model-work.ts';

const dayMs = 86_400_000;
const stepMs = 60_000;

export interface BudgetsDeps extends BillingDeps, Omit<WorkDeps, 'agents' | 'useOf'> {
  /** `budgets` of the root configuration. */
  readonly overall: Live<BudgetsConfig>;
  readonly agents: AgentsApi;
  readonly owners: BudgetOwners;
  readonly autonomyOf: Parameters<typeof createBudgetMethods>[0]['autonomyOf'];
  readonly turnsOf: (agentId: string) => { readonly running: number; readonly queued: number };
}

export interface Budgets extends AsyncDisposable {
  readonly methods: ReturnType<typeof createBudgetMethods>;
  readonly work: ModelWork;
  /** Sums calls, for reports on all of them; those of single conversations in the thread for long searches. */
  readonly usage: (query: UsageQuery) => Promise<UsageAnswer>;
  /** Budget of one turn of an agent for a principal; its possible cost under a cap in money is written to `store` first. */
  budgetOf(
    payer: { readonly agentId: string; readonly principalId: string },
    store: ReserveStore,
    turn: { readonly calling: CallingTurn; readonly used?: { readonly tokens: number; readonly nano: number } | undefined },
  ): TurnBudget;
}

/** Hard caps, model calls outside of turns, and spend. Create it after calls that a crash lost are booked: they count. */
export async function createBudgets(deps: BudgetsDeps): Promise<Budgets> {
  const { db, bus, clock, log, agents } = deps;
  const billing = new Billing(deps);
  const ledger = new Ledger({
    clock,
    overall: deps.overall,
    budgetsOf: (agentId) => agents.find(agentId)?.config.budgets,
    ownerOf: (principalId) => deps.owners.budgetsOf(principalId),
    onSpend: () => billing.count(),
    warn({ name, cap, used, agentId }) {
      const [unit, scale] = cap.unit === 'nano' ? ['USD', 1e9] : ['tokens', 1];
      const message = `The budget ${name} of ${cap.limit / scale} ${unit} is used to ${Math.floor((used * 100) / cap.limit)} %: ${used / scale} ${unit}`;
      log.warn({ agentId, cap: name }, message);
      bus.emit('security:warn', { category: 'budget', message, ...(agentId !== undefined && { agentId }), timestamp: clock.now() });
      billing.announce();
    },
  });
  /** What running turns use, for the calls that their tools make. */
  const uses = new WeakMap<PartOfRoot, TurnUse>();
  const nowMs = clock.now();
  const window = { sinceMs: nowMs - dayMs - 600_000, untilMs: nowMs + stepMs, stepMs };
  for (const row of await db.read(usedSince, window)) ledger.seed(row.agentId, row.atMs, row);
  /** Principals whose caps are new have used something before. */
  async function keepOwners(): Promise<void> {
    const added = ledger.keepOwners(deps.owners.withBudgets());
    if (added.length === 0) return;
    const untilMs = clock.now();
    const since = { sinceMs: untilMs - dayMs - 600_000, untilMs: untilMs + stepMs, stepMs, principalIds: added };
    for (const row of await db.read(usedByPrincipals, since)) ledger.seedOwner(row.principalId, row.atMs, row);
  }
  await keepOwners();
  const following = deps.owners.onChange(keepOwners);
  return {
    methods: createBudgetMethods({ db, clock, ledger, agents, autonomyOf: deps.autonomyOf, turnsOf: deps.turnsOf }),
    work: createModelWork({ ...deps, useOf: (part) => uses.get(part) }, ledger),
    usage: (query) => (query.conversationRefs === undefined ? db.read(usageReport, query) : db.search(usageReport, query)),
    budgetOf(payer, store, { calling, used }) {
      const budget = new LedgerBudget(ledger, payer, store, { used });
      uses.set(calling, budget.use);
      return budget;
    },
    async [Symbol.asyncDispose]() {
      following[Symbol.dispose]();
      await billing[Symbol.asyncDispose]();
    },
  };
}
