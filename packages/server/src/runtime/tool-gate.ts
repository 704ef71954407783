import type { TurnOrigin } from '@gatehouse/contract';
import type { ModelMessage } from '../llm/model.ts';
import { hasEffect, isTainted, reachesPrivate } from './taint.ts';
import type { Tool } from './tool.ts';
import type { ApprovalWait, TurnInput } from './turn.ts';

/** A call that policy allows and whose arguments are parsed, before it runs. */
export interface GatedCall {
  readonly tool: Tool;
  readonly args: unknown;
  readonly turn: TurnInput;
  /** Returns what the model had read and said when it made the call. */
  readonly before: () => readonly ModelMessage[];
  /** Results of the same step that already exist. */
  readonly results: readonly ModelMessage[];
  readonly signal: AbortSignal;
  /** A running tool made the call: its turn cannot be paused in the middle of it. */
  readonly nested?: true;
}

/**
 * `message` is for the model. `unapproved`: the call needed an approval and did not get it. `waits`: the turn is paused until a person
 * has decided, and makes the call again then.
 */
export type GateAnswer =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly message: string; readonly unapproved?: true; readonly waits?: ApprovalWait };

/** Returns undefined, without waiting, when the call is free. */
export type ToolGate = (call: GatedCall) => undefined | Promise<GateAnswer>;

export type ApprovalAction = 'auto' | 'ask' | 'deny';

/** What the operator's rules say about a call. */
export interface GateRule {
  readonly action: ApprovalAction;
  /** Whether `auto` also applies when the model has read untrusted text. */
  readonly tainted: boolean;
  /** Name for people, such as `approvals.rules[0]`. */
  readonly name: string;
}

export interface ToolGateDeps {
  readonly findRule: (call: Pick<GatedCall, 'tool' | 'args' | 'turn'>) => GateRule | undefined;
  /** Read at each call. Mode for calls of risk `write` and `outward` that no rule names. */
  readonly mode: ApprovalAction;
  /** Asks a person about exactly this call, and waits for the decision or has the turn wait for it. */
  readonly ask: (call: GatedCall, why: { readonly reason: string; readonly tainted: boolean }) => Promise<GateAnswer>;
  /** Decides for agents that ask nobody; undefined: a person is asked. */
  readonly insteadOfAsking?: (call: GatedCall, reason: string) => Promise<GateAnswer> | undefined;
}

/** Whether the turn may start such work at all, checked before everything else; undefined: it may. */
export type CapabilityCheck = (call: GatedCall) => GateAnswer | undefined;

const withoutPerson: ReadonlySet<TurnOrigin> = new Set(['channel', 'webhook', 'cron', 'heartbeat', 'background', 'subagent', 'graph']);

/** Whether nobody waits for the turn's answer, so that an approver may come hours later. */
export const isUnattended = ({ origin, ledger }: Pick<TurnInput, 'origin' | 'ledger'>): boolean => withoutPerson.has(origin) || ledger !== undefined;

/**
 * The single check before a call against rules, mode, and the gate for untrusted text that meets private
 * data and an effect (reliability §4.9). A call that none of them names costs one check of its risk.
 */
export function createToolGate(deps: ToolGateDeps, check?: CapabilityCheck): ToolGate {
  const { findRule, ask } = deps;
  const insteadOfAsking = (call: GatedCall, reason: string) =>
    call.turn.isolated === true
      ? refuse(`"${call.tool.name}" needs an approval, which evaluations and replays do not ask for`)
      : deps.insteadOfAsking?.(call, reason);
  return (call) => {
    const { tool, args, turn } = call;
    const denied = check?.(call);
    if (denied !== undefined) return Promise.resolve(denied);
    const rule = findRule(call);
    const mustAsk = tool.mustAsk?.(args);
    const isReading = tool.risk === 'read' || tool.onlyReads?.(args) === true;
    if (isReading && rule === undefined && mustAsk === undefined) return undefined;

    const action = rule?.action ?? (isReading ? 'auto' : deps.mode);
    if (action === 'deny') return refuse(`The operator's rules refuse this call of "${tool.name}"`);
    const tainted = () => isTainted([...call.before(), ...call.results], turn);
    if (action === 'ask' && rule !== undefined) return insteadOfAsking(call, rule.name) ?? ask(call, { reason: rule.name, tainted: tainted() });

    const reason =
      mustAsk ??
      (action === 'ask' ? 'approvals.mode' : undefined) ??
      (rule?.tainted !== true && reachesPrivate(turn) && tainted() && !isReading && hasEffect(tool, args, call.before()) ? taintedReason : undefined);
    if (reason === undefined) return undefined;
    const instead = insteadOfAsking(call, reason);
    if (instead !== undefined) return instead;
    return ask(call, { reason, tainted: reason === taintedReason || tainted() });
  };
}

const taintedReason = 'text from outside, private data and an effect meet in this turn';

async function refuse(message: string): Promise<GateAnswer> {
  return { allowed: false, message: `Not run: ${message}` };
}
