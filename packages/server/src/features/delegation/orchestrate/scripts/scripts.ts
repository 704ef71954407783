import { createHmac, randomBytes } from 'node:crypto';
import { type Capability, type MethodName, methodsByName } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { Tool, ToolContext } from '../../../../runtime/tool.ts';
import { refuseTool } from '../../../../runtime/tool-policy.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { AutonomyApi } from '../../autonomy/api.ts';
import type { CommandTaint } from '../../../environment/workspace/api.ts';
import type { AdmittedCall, CapabilityRequest, ScriptCalls } from '../api.ts';
import { type Asked, askedOf, checkRequest, type ScriptChecks, type Verdict } from './checks.ts';
import { CallRates, type RateLimits } from './rates.ts';
import { toScriptResult } from './result-file.ts';
import { capabilityOf, isDeniedMethod, isDeniedTool, openMethods, toolMethod, trustedMethods } from './callable-tools.ts';

/** A running script: it acts as the tool call that runs it. */
export interface ActiveScript {
  /** `sc_<uuid>` */
  readonly runId: string;
  readonly leaseId: string;
  readonly parentLeaseId: string | null;
  readonly rootRunId: string;
  readonly context: ToolContext;
  readonly caps: readonly Capability[];
  readonly taint: Promise<CommandTaint>;
  /** Decisions by tool or method; content-free. */
  readonly calls: Map<string, { readonly tool: string; readonly capability: string | null; readonly decision: 'allow' | 'deny'; count: number }>;
  readonly results: { count: number; bytes: number; files: number; fileBytes: number };
}

export interface ScriptsDeps {
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly agents: Pick<AgentsApi, 'find'>;
  readonly autonomy: Pick<AutonomyApi, 'leaseOf' | 'standing'>;
  readonly rates: () => RateLimits;
  readonly toolsOf: (agentId: string) => readonly Tool[];
  /** Key for the digests of bearers. */
  readonly key: Uint8Array;
  /** Path of the workspace as scripts see it. */
  readonly workspaceInside: string;
}

const maxNames = 64;
/** Replaces unknown names, because a script may put any text that it has read there. */
const unknownName = '(unknown)';
/** Counts requests without a valid lease. */
const nobody = { leaseId: '', rootRunId: '' };
const isMethod = (name: string): name is MethodName => Object.hasOwn(methodsByName, name);

/** Tracks running scripts and checks their calls. Only the lease identifies the caller: claims in a request are ignored. */
export class Scripts implements ScriptCalls {
  readonly #deps: ScriptsDeps;
  readonly #active = new Map<string, ActiveScript>();
  readonly #rates: CallRates;
  /** Scripts whose latest call exceeded the rate limit, which was reported once. */
  readonly #paced = new Set<string>();

  constructor(deps: ScriptsDeps) {
    this.#deps = deps;
    this.#rates = new CallRates(deps.clock, deps.rates);
  }

  newBearer(): string {
    return randomBytes(32).toString('base64url');
  }

  digestOf(bearer: string): string {
    return createHmac('sha256', this.#deps.key).update(bearer).digest('base64url');
  }

  begin(script: ActiveScript): void {
    this.#active.set(script.leaseId, script);
  }

  end({ leaseId, rootRunId }: ActiveScript): void {
    this.#active.delete(leaseId);
    this.#paced.delete(leaseId);
    this.#rates.forget(leaseId, rootRunId, ![...this.#active.values()].some((other) => other.rootRunId === rootRunId));
  }

  async admit(request: CapabilityRequest): Promise<AdmittedCall> {
    const asked = askedOf(request, toolMethod);
    const script = await this.#holderOf(request.bearer);
    const verdict = checkRequest(script === undefined ? undefined : this.#checksOf(script, asked), asked);
    // Refusals count too, and all requests without a lease count together, because each decision emits an event.
    const { leaseId, rootRunId } = script ?? nobody;
    const waitMs = this.#rates.take(leaseId, rootRunId);
    if (waitMs === undefined) {
      this.#paced.delete(leaseId);
      this.#record(asked, script, verdict, verdict.allowed ? undefined : verdict.check);
    } else if (!this.#paced.has(leaseId)) {
      this.#paced.add(leaseId);
      this.#record(asked, script, { ...verdict, allowed: false }, 'rate');
    }
    if (script !== undefined && waitMs !== undefined)
      throw new AppError('rate_limited', 'Too many calls of scripts; try again later', { retryAfterMs: waitMs });
    if (!verdict.allowed) throw verdict.error;
    if (script === undefined) throw new Error('a request without a lease was allowed');
    const params = Object.fromEntries(Object.entries(request.params).filter(([name]) => !name.startsWith('_')));
    if (request.method !== toolMethod) return { route: 'method', method: request.method, params, call: this.#callOf(script, request.method) };
    const unknown = Object.keys(params).find((name) => name !== 'tool' && name !== 'args');
    if (unknown !== undefined) throw new AppError('invalid_params', `${unknown.slice(0, 64)}: expected "tool" and "args" only`, { param: unknown });
    const args = params['args'] ?? {};
    if (typeof args !== 'object' || Array.isArray(args)) throw new AppError('invalid_params', 'args: expected an object', { param: 'args' });
    return { route: 'tool', run: () => this.#runTool(script, asked.tool ?? '', args) };
  }

  /** Returns the script that holds the bearer, if its lease is valid. */
  async #holderOf(bearer: string): Promise<ActiveScript | undefined> {
    const lease = await this.#deps.autonomy.leaseOf(this.digestOf(bearer));
    return lease === undefined ? undefined : this.#active.get(lease.id);
  }

  #checksOf(script: ActiveScript, asked: Asked): ScriptChecks {
    const { method, tool } = asked;
    return {
      isDenied: () => (isDeniedMethod(method) && !this.#isTrusted(script, method)) || (tool !== undefined && isDeniedTool(tool)),
      refuseOrigin: () => this.#refuseOrigin(script, asked),
      needs: () => {
        if (method === toolMethod) return tool === undefined ? undefined : capabilityOf(tool);
        return openMethods.has(method) || trustedMethods.has(method) ? null : undefined;
      },
      has: (capability) => this.#has(script, capability),
    };
  }

  async #runTool(script: ActiveScript, tool: string, args: object): Promise<unknown> {
    const { context, results } = script;
    const { content, isError, outside } = await context.callTool(tool, args);
    if (outside !== undefined && outside.clean !== true) await (await script.taint).taint();
    if (isError === true) throw new AppError('precondition_failed', content.slice(0, 4000).toWellFormed());
    results.bytes += Buffer.byteLength(content);
    // Several calls may run at once, so a name is never reused, even when no file is needed.
    results.count += 1;
    const name = `${script.leaseId}-${results.count}`;
    const result = await toScriptResult(content, { workspaceDir: context.workspaceDir, inside: this.#deps.workspaceInside, name });
    if (result.ref !== undefined) {
      results.files += 1;
      results.fileBytes += result.ref.bytes;
    }
    return result;
  }

  #isTrusted({ context }: ActiveScript, method: string): boolean {
    return trustedMethods.has(method) && this.#deps.agents.find(context.agentId)?.config.autonomy.adminTrust === true;
  }

  /** The grant replaces the scope; the method itself limits what an agent reaches. */
  #callOf(script: ActiveScript, method: string): CallContext {
    const { call } = script.context;
    return this.#isTrusted(script, method) ? { ...call, identity: { ...call.identity, scopes: [...call.identity.scopes, 'admin'] } } : call;
  }

  /** Refuses administrative methods to agents, and tools that the origin of the turn may not use. */
  #refuseOrigin({ context }: ActiveScript, { method, tool }: Asked): string | undefined {
    if (isMethod(method) && methodsByName[method].scope === 'admin' && !trustedMethods.has(method)) return `An agent may not call ${method}`;
    if (tool === undefined) return undefined;
    const agent = this.#deps.agents.find(context.agentId);
    const found = this.#deps.toolsOf(context.agentId).find(({ name }) => name === tool);
    if (agent === undefined) return 'The agent no longer exists';
    if (found !== undefined && refuseTool(found, agent.config, context.origin) === 'origin') return `The tool "${tool}" is not allowed here`;
    return undefined;
  }

  /** Returns whether the lease has the capability and the turn still may use it, so an eviction applies from the next call on. */
  #has({ caps, context }: ActiveScript, capability: Capability): boolean {
    const agent: Agent | undefined = this.#deps.agents.find(context.agentId);
    return agent !== undefined && caps.includes(capability) && this.#deps.autonomy.standing(agent, context.call.agentCaller).caps.has(capability);
  }

  #isTool(name: string, script: ActiveScript | undefined): boolean {
    if (capabilityOf(name) !== undefined) return true;
    return script !== undefined && this.#deps.toolsOf(script.context.agentId).some((tool) => tool.name === name);
  }

  #record(asked: Asked, script: ActiveScript | undefined, { allowed, capability }: Pick<Verdict, 'allowed' | 'capability'>, reason?: string): void {
    const decision = allowed ? 'allow' : 'deny';
    const tool = asked.tool === undefined || this.#isTool(asked.tool, script) ? asked.tool : unknownName;
    const method = asked.method === toolMethod || isMethod(asked.method) ? asked.method : unknownName;
    const name = tool ?? method;
    const key = `${decision} ${name}`;
    const counted = script?.calls.get(key);
    if (counted !== undefined) counted.count += 1;
    else if (script !== undefined && script.calls.size < maxNames) script.calls.set(key, { tool: name, capability, decision, count: 1 });
    const run = script?.context.call.agentCaller?.turn?.run;
    this.#deps.bus.emit('capability:audited', {
      agentId: script?.context.agentId ?? null,
      capability,
      method,
      ...(tool !== undefined && { tool }),
      rootRunId: script?.rootRunId ?? null,
      ...(run !== undefined && { runId: run.runId }),
      ...(script !== undefined && { leaseId: script.leaseId }),
      ...(script !== undefined && script.parentLeaseId !== null && { parentLeaseId: script.parentLeaseId }),
      decision,
      ...(reason !== undefined && { reason }),
      timestamp: this.#deps.clock.now(),
    });
  }
}
