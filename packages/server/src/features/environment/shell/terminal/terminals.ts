import { AppError } from '../../../../kernel/app-error.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { Jail } from '../../../../kernel/jail.ts';
import { settledWithin } from '../../../../kernel/timers.ts';
import type { TraceWork } from '../../../../kernel/work-trace.ts';
import type { Owner } from '../background-command.ts';
import type { RunningCommand, Scope } from '../background-commands.ts';
import type { CommandSpec, ShellDeps } from '../command.ts';
import { onTerminal, type TerminalSize } from './pseudo-terminal.ts';
import { type SessionDeps, type TerminalOwner, TerminalSession } from './session.ts';

export interface TerminalsDeps extends SessionDeps, Pick<ShellDeps, 'config'> {
  readonly bus: EventBus;
  readonly traceWork: TraceWork;
}

const maxEverywhere = 32;
const keptMs = 30 * 60_000;
const maxEndedPerAgent = 4;
const storedMs = 2_000;
const checkMs = 10_000;

/** Keeps terminal sessions, ends those that are idle, and keeps the last screen of those that ended for a while. */
export class Terminals implements AsyncDisposable {
  readonly #deps: TerminalsDeps;
  readonly #sessions = new Map<string, { readonly session: TerminalSession; endedAtMs?: number; isEvicted?: true }>();
  #cancelCheck: (() => void) | undefined;

  constructor(deps: TerminalsDeps) {
    this.#deps = deps;
  }

  /** Fails with `precondition_failed` where no further session may be opened. */
  assertFree(agentId: string): void {
    const running = this.#running();
    const most = this.#deps.config.current.maxTerminalsPerAgent;
    if (running.filter(({ owner }) => owner.agentId === agentId).length >= most)
      throw new AppError('precondition_failed', `This agent has ${most} terminal sessions open, which is its limit: close one (action "close")`);
    if (running.length >= maxEverywhere) throw new AppError('precondition_failed', `${maxEverywhere} terminal sessions are open: try again later`);
  }

  open(
    jail: Jail,
    spec: CommandSpec,
    { owner, size, commandLine }: { readonly owner: TerminalOwner; readonly size: TerminalSize; readonly commandLine: string },
  ): TerminalSession {
    this.#forgetOld();
    this.assertFree(owner.agentId);
    const { clock } = this.#deps;
    const onOne = { ...spec, argv: onTerminal(spec.argv, size), env: { ...spec.env, TERM: 'xterm-256color' } };
    const session = new TerminalSession(this.#deps, jail.run(onOne), { id: newId('term'), owner, spec, size, commandLine });
    const kept: { readonly session: TerminalSession; endedAtMs?: number } = { session };
    this.#sessions.set(session.id, kept);
    void session.done.then(() => {
      kept.endedAtMs = clock.now();
      this.#forgetEnded(owner.agentId);
    });
    this.#cancelCheck ??= this.#checkLater();
    return session;
  }

  /** Lists the sessions of an owner, those that ended included. */
  list({ agentId, principalId }: Owner): readonly TerminalSession[] {
    this.#forgetOld();
    return this.#all().filter(({ owner }) => owner.agentId === agentId && owner.principalId === principalId);
  }

  /** Returns a session of an owner; throws `not_found` for those of others. */
  find({ agentId, principalId }: Owner, id: string): TerminalSession {
    this.#forgetOld();
    const kept = this.#sessions.get(id);
    if (kept === undefined || kept.session.owner.agentId !== agentId || kept.session.owner.principalId !== principalId)
      throw new AppError('not_found', `No terminal session has the id ${JSON.stringify(id.slice(0, 64))}; use "list" to see the sessions`);
    return kept.session;
  }

  /** Whether what is typed into a session reaches the network. */
  isNetworked(id: string): boolean {
    return this.#sessions.get(id)?.session.spec.network === true;
  }

  wasEvicted(id: string): boolean {
    return this.#sessions.get(id)?.isEvicted === true;
  }

  /** Announces that a wait of the agent continues in the background. */
  promoted(agentId: string): void {
    this.#deps.bus.emit('terminal.drive_promoted', { agentId, count: 1, timestamp: this.#deps.clock.now() });
  }

  /** Ends sessions that belong to anything named. Returns how many ran. */
  end(scope: Scope): number {
    const named = Object.entries(scope) as [keyof Scope, string][];
    const ended = this.#running().filter(({ owner }) => named.some(([key, value]) => owner[key] === value));
    for (const session of ended) session.kill();
    return ended.length;
  }

  /** Returns a running session, for a person. */
  running(id: string): TerminalSession | undefined {
    const session = this.#sessions.get(id)?.session;
    return session?.isRunning === true ? session : undefined;
  }

  /** Ends one session; resolves once its processes are gone. */
  async endOne(id: string): Promise<void> {
    const session = this.running(id);
    session?.kill();
    await session?.gone;
  }

  /** Lists running sessions, oldest first. */
  listRunning(): readonly RunningCommand[] {
    return this.#running().map(({ id, owner: { turnId: _, traceId: __, sessionKey: ___, ...owner }, startedAtMs, commandLine }) => ({
      ...owner,
      id,
      kind: 'terminal' as const,
      startedAtMs,
      command: commandLine,
    }));
  }

  forgetAgent(agentId: string): void {
    for (const session of this.#all()) {
      if (session.owner.agentId !== agentId) continue;
      session.kill();
      this.#sessions.delete(session.id);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#cancelCheck?.();
    const sessions = this.#all();
    for (const session of sessions) session.kill();
    await settledWithin(
      this.#deps.processClock,
      storedMs,
      sessions.map(({ done }) => done),
    );
  }

  #all(): TerminalSession[] {
    return [...this.#sessions.values()].map(({ session }) => session);
  }

  #running(): TerminalSession[] {
    return this.#all().filter(({ isRunning }) => isRunning);
  }

  #checkLater(): () => void {
    const { clock, config } = this.#deps;
    return clock.after(Math.min(checkMs, config.current.terminalIdleMs), () => {
      for (const session of this.#running()) if (session.idleMs >= config.current.terminalIdleMs) this.#evict(session);
      this.#cancelCheck = this.#running().length === 0 ? undefined : this.#checkLater();
    });
  }

  #evict(session: TerminalSession): void {
    const { bus, clock, traceWork } = this.#deps;
    const kept = this.#sessions.get(session.id);
    if (kept === undefined || kept.isEvicted === true) return;
    kept.isEvicted = true;
    session.kill();
    const { agentId, principalId, conversationRef, sessionKey, origin, traceId, turnId, rootRunId } = session.owner;
    bus.emit('terminal.session_evicted', { agentId, count: 1, timestamp: clock.now() });
    traceWork({
      kind: 'background',
      traceId,
      rootRunId,
      parentId: turnId,
      agentId,
      principalId,
      conversationRef,
      sessionKey,
      origin,
      startedAtMs: session.startedAtMs,
      endedAtMs: clock.now(),
      outcome: 'cancelled',
      endReason: 'evicted',
      refs: { terminalId: session.id },
      facts: { tool: 'terminal', event: 'evicted' },
    });
  }

  #forgetOld(): void {
    const { clock } = this.#deps;
    for (const [id, { endedAtMs }] of this.#sessions) if (endedAtMs !== undefined && clock.now() - endedAtMs > keptMs) this.#sessions.delete(id);
  }

  /** Keeps only the last sessions of an agent that have ended. */
  #forgetEnded(agentId: string): void {
    const ended = [...this.#sessions].filter(([, { session, endedAtMs }]) => endedAtMs !== undefined && session.owner.agentId === agentId);
    for (const [id] of ended.slice(0, -maxEndedPerAgent)) this.#sessions.delete(id);
  }
}
