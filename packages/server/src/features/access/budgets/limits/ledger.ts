import type { Live } from '../../../../kernel/config/live.ts';
import type { AgentConfig } from '@gatehouse/contract';
import type { Clock } from '../../../../kernel/clock.ts';
import type { ModelInfo } from '../../../../llm/model.ts';
import { type BudgetRefusal, refusal, type Refused } from '../../../../runtime/turn-budget.ts';
import { type Cap, type Caps, capsOf } from './caps.ts';
import type { OwnerBudgets } from '../api.ts';
import type { BudgetsConfig } from '../config.ts';
import { RollingSum } from './rolling-sum.ts';

/** Fewer output tokens than this make no useful answer. */
const leastOutputTokens = 16;
/** Share of a cap at which its owner is warned. */
export const warnAt = 0.8;
const windowMs = { hour: 3_600_000, day: 86_400_000 } as const;
const windowSteps = { hour: [60_000, 60], day: [600_000, 144] } as const;
/** Agents whose sums are kept; idle agents are forgotten once nothing of theirs is left in a window. */
const maxIdleAgents = 1_000;
/** A cap that only running calls fill has capacity as soon as one of them ends. */
const soonMs = 1_000;

/** Tokens and 1e-9 dollars. */
export interface Amount {
  readonly tokens: number;
  readonly nano: number;
}

/** Usage and reserves of one scope (an agent, or all of them). */
class Account {
  readonly hour = new RollingSum(...windowSteps.hour);
  readonly day = new RollingSum(...windowSteps.day);
  heldTokens = 0;
  heldNano = 0;
  /** Cap → time and limit of its last warning: a higher limit is warned about again. */
  readonly warned = new Map<Cap['key'], { readonly atMs: number; readonly limit: number }>();
}

/** Caps with the sums that they limit. */
interface Scope {
  readonly kind: CapStatus['scope'];
  /** Key of the configuration that holds the caps. */
  readonly name: string;
  readonly caps: Caps;
  readonly account: Account;
}

/** Usage and reserve of one turn; its calls are sequential. */
export interface TurnUse {
  tokens: number;
  nano: number;
  heldTokens: number;
  heldNano: number;
  /** Whom the turn is for; nobody with caps when absent. */
  readonly principalId?: string;
  /** Caps of that principal, as they were when the present call was reserved: its reserve is released from the same sums. */
  owner?: Scope | undefined;
  /** Usage and reserve of the calls that its tools make, such as those of images: they count against the caps of a turn. */
  parts?: { tokens: number; nano: number; heldTokens: number; heldNano: number };
  /** The turn of which this is such a part. */
  readonly of?: TurnUse | undefined;
}

function partsOf(turn: TurnUse): NonNullable<TurnUse['parts']> {
  turn.parts ??= { tokens: 0, nano: 0, heldTokens: 0, heldNano: 0 };
  return turn.parts;
}

export interface CallNeed {
  readonly models: readonly ModelInfo[];
  readonly inputTokens: number;
  readonly maxOutputTokens: number;
  /** Most that it may cost in money, for a call that is not priced by tokens. */
  readonly mostNano?: number | undefined;
  /** Key of the configuration that states the price of the model; that of its provider otherwise. */
  readonly priceKey?: string | undefined;
}

export interface Held extends Amount {
  readonly maxOutputTokens: number;
  readonly cappedBy?: Refused;
  readonly inMoney: boolean;
}

export interface CapStatus {
  readonly cap: Cap;
  readonly scope: 'agent' | OwnerBudgets['kind'] | 'all';
  readonly used: number;
  readonly held: number;
  /** Time until the oldest usage leaves the window; undefined when there is none, and for turns. */
  readonly freesInMs: number | undefined;
}

export interface LedgerDeps {
  readonly clock: Clock;
  /** `budgets` of the root configuration. */
  readonly overall: Live<BudgetsConfig>;
  /** Current `budgets` of an agent; undefined when it is gone. */
  readonly budgetsOf: (agentId: string) => AgentConfig['budgets'] | undefined;
  /** Caps of a principal; undefined when it has none. */
  readonly ownerOf?: (principalId: string) => OwnerBudgets | undefined;
  /** Called for each booking. */
  readonly onSpend: () => void;
  /** Called when a cap is used to 80 %, once per cap and window. */
  readonly warn: (about: { readonly name: string; readonly cap: Cap; readonly used: number; readonly agentId: string | undefined }) => void;
}

const noCaps: Caps = { all: [], held: [], money: undefined };

/**
 * Decides, as the only place, whether a call may be made. Everything is in memory and synchronous, so that two calls
 * cannot take the same amount; a call without caps costs the update of four sums.
 */
export class Ledger {
  readonly #deps: LedgerDeps;
  readonly #accounts = new Map<string, Account>();
  /** Sums of principals that have caps. */
  readonly #owners = new Map<string, Account>();
  readonly #all = new Account();
  #lastMs = 0;
  #lastMonotonicMs = 0;

  constructor(deps: LedgerDeps) {
    this.#deps = deps;
  }

  /** Loads earlier usage from the rows. */
  seed(agentId: string, atMs: number, used: Amount): void {
    this.#add(this.#accountOf(agentId), atMs, this.#now(), used);
  }

  /** Starts to keep the sums of principals that have caps now, and forgets those of others; returns the principals to load earlier usage for. */
  keepOwners(principalIds: readonly string[]): string[] {
    for (const [principalId, account] of this.#owners)
      if (!principalIds.includes(principalId) && account.heldTokens === 0) this.#owners.delete(principalId);
    const added = principalIds.filter((principalId) => !this.#owners.has(principalId));
    for (const principalId of added) this.#owners.set(principalId, new Account());
    return added;
  }

  /** Loads earlier usage of a principal from the rows. */
  seedOwner(principalId: string, atMs: number, used: Amount): void {
    const account = this.#owners.get(principalId);
    if (account !== undefined) addTo(account, atMs, this.#now(), used);
  }

  /** Reserves the most that the call may cost, or names the cap that it exceeds. Undefined when nothing is capped. */
  hold(agentId: string, turn: TurnUse, need: CallNeed): Held | BudgetRefusal | undefined {
    turn.owner = this.#ownerOf(turn.principalId);
    const scopes = this.#scopesOf(agentId, turn.owner).filter(({ caps }) => caps.held.length > 0);
    if (scopes.length === 0) return undefined;
    const inMoney = scopes.find(({ caps }) => caps.money !== undefined);
    const unpriced = inMoney && need.models.find((model) => model.price === null);
    if (inMoney?.caps.money !== undefined && unpriced !== undefined) return unknownPrice(unpriced, inMoney.caps.money, inMoney, need.priceKey);
    const nowMs = this.#now();
    let allowed = need.maxOutputTokens;
    let tightest: { readonly cap: Cap; readonly scope: Scope } | undefined;
    for (const scope of scopes)
      for (const cap of scope.caps.held) {
        const output = affordable(cap.unit, cap.limit - usedOf(cap, scope.account, turn, nowMs) - heldOf(cap, scope.account, turn), need);
        if (output >= allowed) continue;
        allowed = output;
        tightest = { cap, scope };
      }
    const least = Math.min(leastOutputTokens, need.maxOutputTokens);
    const cappedBy = tightest === undefined ? undefined : refusedBy(tightest, turn, costOfCall(tightest.cap.unit, need, least), nowMs);
    if (cappedBy !== undefined && allowed < least) return { refused: cappedBy };
    const tokens = costOfCall('tokens', need, allowed);
    const nano = costOfCall('nano', need, allowed);
    this.#keep(this.#accountOf(agentId), turn, { tokens, nano }, 1);
    return { tokens, nano, maxOutputTokens: allowed, inMoney: inMoney !== undefined, ...(cappedBy !== undefined && { cappedBy }) };
  }

  /** Grows the reserve if it fits under every cap. */
  extend(agentId: string, turn: TurnUse, more: Amount): boolean {
    const nowMs = this.#now();
    const fits = (cap: Cap, account: Account) =>
      more[cap.unit] === 0 || usedOf(cap, account, turn, nowMs) + heldOf(cap, account, turn) + more[cap.unit] <= cap.limit;
    if (!this.#scopesOf(agentId, turn.owner).every(({ caps, account }) => caps.held.every((cap) => fits(cap, account)))) return false;
    this.#keep(this.#accountOf(agentId), turn, more, 1);
    return true;
  }

  release(agentId: string, turn: TurnUse, held: Amount): void {
    this.#keep(this.#accountOf(agentId), turn, held, -1);
  }

  /** Books usage, and warns about caps that reach 80 %. */
  spend(agentId: string, turn: TurnUse, used: Amount): void {
    const nowMs = this.#now();
    for (const one of turn.of === undefined ? [turn] : [turn, partsOf(turn.of)]) {
      one.tokens += used.tokens;
      one.nano += used.nano;
    }
    this.#deps.onSpend();
    this.#add(this.#accountOf(agentId), nowMs, nowMs, used);
    const owner = this.#ownerOf(turn.principalId);
    if (owner !== undefined) addTo(owner.account, nowMs, nowMs, used);
    for (const scope of this.#scopesOf(agentId, owner)) for (const cap of scope.caps.all) this.#warn(cap, scope, turn, used, agentId, nowMs);
  }

  /** Returns the state of the caps: those of the agent, then of the principal, then over all. */
  status(agentId: string, principalId?: string): readonly CapStatus[] {
    const nowMs = this.#now();
    return this.#scopesOf(agentId, this.#ownerOf(principalId)).flatMap(({ kind, caps, account }) =>
      caps.all.map((cap) => ({
        cap,
        scope: kind,
        used: cap.window === 'turn' ? 0 : account[cap.window].used(nowMs, cap.unit),
        held: cap.window === 'turn' ? 0 : heldIn(account, cap.unit),
        freesInMs: cap.window === 'turn' ? undefined : account[cap.window].freesInMs(nowMs, cap.unit, 1),
      })),
    );
  }

  #scopesOf(agentId: string, owner: Scope | undefined): readonly Scope[] {
    const scopes: Scope[] = [];
    const budgets = this.#deps.budgetsOf(agentId);
    const own = budgets === undefined ? noCaps : capsOf(budgets);
    if (own.all.length > 0) scopes.push({ kind: 'agent', name: `agents.${agentId}.budgets`, caps: own, account: this.#accountOf(agentId) });
    if (owner !== undefined) scopes.push(owner);
    const overall = capsOf(this.#deps.overall.current);
    if (overall.all.length > 0) scopes.push({ kind: 'all', name: 'budgets', caps: overall, account: this.#all });
    return scopes;
  }

  #ownerOf(principalId: string | undefined): Scope | undefined {
    const account = principalId === undefined ? undefined : this.#owners.get(principalId);
    const found = account && principalId !== undefined ? this.#deps.ownerOf?.(principalId) : undefined;
    return account && found && { kind: found.kind, name: found.name, caps: capsOf(found.budgets), account };
  }

  #accountOf(agentId: string): Account {
    let account = this.#accounts.get(agentId);
    if (account === undefined) {
      if (this.#accounts.size >= maxIdleAgents) this.#forgetIdle();
      account = new Account();
      this.#accounts.set(agentId, account);
    }
    return account;
  }

  #forgetIdle(): void {
    const nowMs = this.#now();
    for (const [agentId, account] of this.#accounts)
      if (account.heldTokens === 0 && account.day.used(nowMs, 'tokens') === 0 && account.day.used(nowMs, 'nano') === 0)
        this.#accounts.delete(agentId);
  }

  #add(account: Account, atMs: number, nowMs: number, used: Amount): void {
    addTo(account, atMs, nowMs, used);
    addTo(this.#all, atMs, nowMs, used);
  }

  #keep(account: Account, turn: TurnUse, { tokens, nano }: Amount, sign: 1 | -1): void {
    for (const one of turn.of === undefined ? [turn] : [turn, partsOf(turn.of)]) {
      one.heldTokens += sign * tokens;
      one.heldNano += sign * nano;
    }
    account.heldTokens += sign * tokens;
    account.heldNano += sign * nano;
    this.#all.heldTokens += sign * tokens;
    this.#all.heldNano += sign * nano;
    if (turn.owner === undefined) return;
    turn.owner.account.heldTokens += sign * tokens;
    turn.owner.account.heldNano += sign * nano;
  }

  #warn(cap: Cap, { kind, name, account }: Scope, turn: TurnUse, added: Amount, agentId: string, nowMs: number): void {
    const used = usedOf(cap, account, turn, nowMs);
    if (used < cap.limit * warnAt) return;
    if (cap.window === 'turn') {
      // Only the call that crosses the line.
      if (used - added[cap.unit] >= cap.limit * warnAt) return;
    } else {
      const last = account.warned.get(cap.key);
      if (last !== undefined && last.limit >= cap.limit && nowMs - last.atMs < windowMs[cap.window]) return;
      account.warned.set(cap.key, { atMs: nowMs, limit: cap.limit });
    }
    this.#deps.warn({ name: `${name}.${cap.key}`, cap, used, agentId: kind === 'agent' ? agentId : undefined });
  }

  /**
   * A clock that keeps running when the wall clock goes back, which would otherwise freeze the sums until it catches up, and does
   * not jump when it is corrected, which would empty them. It follows a wall clock that is ahead: the machine may have slept.
   */
  #now(): number {
    const { clock } = this.#deps;
    const monotonicMs = clock.monotonic();
    this.#lastMs = Math.max(clock.now(), this.#lastMs + monotonicMs - this.#lastMonotonicMs);
    this.#lastMonotonicMs = monotonicMs;
    return Math.floor(this.#lastMs);
  }
}

function addTo(account: Account, atMs: number, nowMs: number, { tokens, nano }: Amount): void {
  account.hour.add(atMs, nowMs, tokens, nano);
  account.day.add(atMs, nowMs, tokens, nano);
}

function usedOf(cap: Cap, scope: Account, turn: TurnUse, nowMs: number): number {
  if (cap.window !== 'turn') return scope[cap.window].used(nowMs, cap.unit);
  const whole = turn.of ?? turn;
  return whole[cap.unit] + (whole.parts?.[cap.unit] ?? 0);
}

function heldOf(cap: Cap, scope: Account, turn: TurnUse): number {
  if (cap.window !== 'turn') return heldIn(scope, cap.unit);
  const whole = turn.of ?? turn;
  return heldIn(whole, cap.unit) + (whole.parts === undefined ? 0 : heldIn(whole.parts, cap.unit));
}

function heldIn(holder: { readonly heldTokens: number; readonly heldNano: number }, unit: Cap['unit']): number {
  return unit === 'tokens' ? holder.heldTokens : holder.heldNano;
}

/** Price in 1e-9 dollars per token; input at the highest rate, because cache usage is not known in advance. */
function pricesOf({ price }: ModelInfo): { readonly input: number; readonly output: number } {
  if (price === null) return { input: 0, output: 0 };
  return { input: Math.max(price.input, price.cacheRead, price.cacheWrite) * 1000, output: price.output * 1000 };
}

/** Slack for rounding: fresh, read and written input are rounded separately. */
const roundingNano = 2;

function inputCost(input: number, inputTokens: number): number {
  return input === 0 ? 0 : Math.ceil(inputTokens * input) + roundingNano;
}

/** Returns the most that a call may cost with so much output, at the most expensive of its models. */
export function costOfCall(unit: Cap['unit'], { models, inputTokens, mostNano }: CallNeed, outputTokens: number): number {
  if (unit === 'tokens') return inputTokens + outputTokens;
  if (mostNano !== undefined) return mostNano;
  let most = 0;
  for (const model of models) {
    const { input, output } = pricesOf(model);
    most = Math.max(most, inputCost(input, inputTokens) + Math.ceil(outputTokens * output));
  }
  return most;
}

/** Returns the highest possible cost of a call. */
export const maxCostOf = (need: CallNeed): Amount => ({
  tokens: costOfCall('tokens', need, need.maxOutputTokens),
  nano: costOfCall('nano', need, need.maxOutputTokens),
});

/** Returns the output tokens that fit, whichever model answers; negative when not even the input fits. */
function affordable(unit: Cap['unit'], room: number, { models, inputTokens, mostNano }: CallNeed): number {
  if (unit === 'tokens') return room - inputTokens;
  if (mostNano !== undefined) return mostNano === 0 || mostNano <= room ? Number.POSITIVE_INFINITY : -1;
  let least = Number.POSITIVE_INFINITY;
  for (const model of models) {
    const { input, output } = pricesOf(model);
    // A free model may be called whatever was spent.
    if (input === 0 && output === 0) continue;
    const left = room - inputCost(input, inputTokens);
    least = Math.min(least, left < 0 ? -1 : output === 0 ? least : Math.floor(left / output));
  }
  return least;
}

/** `least` is the cost of the smallest useful call. */
function refusedBy(
  { cap, scope: { account: scope, name } }: { readonly cap: Cap; readonly scope: Scope },
  turn: TurnUse,
  least: number,
  nowMs: number,
): Refused {
  const used = usedOf(cap, scope, turn, nowMs);
  const held = heldOf(cap, scope, turn);
  const scale = cap.unit === 'nano' ? 1e9 : 1;
  const lacking = used + least - cap.limit;
  let retryAfterMs: number | undefined;
  if (cap.window !== 'turn' && least <= cap.limit) retryAfterMs = lacking <= 0 ? soonMs : scope[cap.window].freesInMs(nowMs, cap.unit, lacking);
  return refusal({
    cap: `${name}.${cap.key}`,
    limit: cap.limit / scale,
    used: used / scale,
    reserved: held / scale,
    unit: cap.unit === 'nano' ? 'USD' : 'tokens',
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}

function unknownPrice(model: ModelInfo, cap: Cap, scope: Scope, priceKey: string | undefined): BudgetRefusal {
  const name = `${scope.name}.${cap.key}`;
  const message =
    `The price of ${model.provider}/${model.modelId} is not known, and ${name} is a cap in US dollars: ` +
    (priceKey === undefined ? `set the model's cost under providers.${model.provider}.models` : `set ${priceKey}`);
  return { refused: { cap: name, limit: cap.limit / 1e9, used: 0, message } };
}
