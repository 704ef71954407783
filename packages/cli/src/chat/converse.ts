import { addRule, type Client, ConflictError, GatehouseError, NotFoundError, ruleFor } from '@gatehouse/client';
import type { EventPayload } from '@gatehouse/contract';
import { revealedJson } from '../commands/approvals-text.ts';
import { describeFailure } from '../failure.ts';
import type { Io } from '../io.ts';
import { plainText, shorten } from '../render/plain.ts';
import { renderDuration } from '../render/table.ts';
import { type Conversation, type KeptConversation, StatelessConversation, stopTurn } from './conversation.ts';
import { followConversations, type LiveEvent } from './live.ts';
import { type ChatState, completeSlash, runSlash, shortHelp, showLast } from './slash.ts';
import { ruleText } from './rule-text.ts';
import { finishNote, type Turn } from './turn.ts';
import type { AnswerView, ChatView } from './view.ts';

export interface ConverseOptions {
  readonly client: Client;
  readonly conversation: Conversation;
  readonly view: ChatView;
  readonly io: Io;
  /** Whether the person has a screen that is redrawn: then more is shown in passing. */
  readonly isRich: boolean;
  /** Shows the last messages first. */
  readonly recalls: boolean;
}

type Request = EventPayload<'approval:requested'>;

/** Results of tools are previews: everything is in the conversation. */
const maxResultLines = 6;

/** Runs the interactive loop until the person leaves. */
export async function converse(options: ConverseOptions): Promise<void> {
  const chat = new Chat(options);
  try {
    await chat.run();
  } finally {
    chat.close();
  }
}

class Chat {
  readonly #client: Client;
  readonly #conversation: Conversation;
  readonly #view: ChatView;
  readonly #isRich: boolean;
  readonly #recalls: boolean;
  readonly #state: ChatState;
  readonly #over = new AbortController();
  /** Open questions by request; decided elsewhere, they go away. */
  readonly #asked = new Map<string, AbortController>();
  #asking: Promise<void> = Promise.resolve();
  #running: AbortController | undefined;
  /** The next message must not be stopped along with the one before. */
  #stopping: Promise<void> = Promise.resolve();
  #answer: AnswerView | undefined;
  #thought = '';
  #thoughtSinceMs = 0;
  readonly #toolsRunning = new Map<string, string>();
  #output = '';

  constructor({ client, conversation, view, io, isRich, recalls }: ConverseOptions) {
    this.#client = client;
    this.#conversation = conversation;
    this.#view = view;
    this.#isRich = isRich;
    this.#recalls = recalls;
    this.#state = {
      client,
      io,
      view,
      conversation,
      stateless: conversation instanceof StatelessConversation ? conversation : undefined,
      attachments: [],
      tokens: 0,
      listed: [],
      isOver: false,
    };
    view.onStop = () => this.#stop();
    view.onMessage = (text) => this.#steer(text);
    view.complete = (before) => completeSlash(before, this.#state);
  }

  async run(): Promise<void> {
    const { kept, model } = this.#conversation;
    this.#view.note(
      `Chatting with ${model}${kept === undefined ? ', nothing is kept' : ` in ${plainText(kept.name)}`}. ${shortHelp(kept !== undefined)}`,
      'dim',
    );
    if (kept !== undefined) {
      await kept.open();
      if (this.#recalls) await showLast(this.#state);
      void this.#follow();
      await this.#askPending();
    }
    for await (const text of this.#view.messages()) {
      const line = text.trim();
      if (line === '') continue;
      if (line.startsWith('/')) await this.#runSlash(line);
      else await this.#ask(line);
      if (this.#state.isOver) break;
    }
  }

  close(): void {
    this.#over.abort();
    this.#running?.abort();
    this.#view[Symbol.dispose]();
  }

  async #runSlash(line: string): Promise<void> {
    try {
      await runSlash(line, this.#state);
    } catch (error) {
      this.#fail(error);
    }
  }

  async #ask(message: string): Promise<void> {
    const running = new AbortController();
    this.#running = running;
    this.#thought = '';
    const answer = this.#view.answer();
    this.#answer = answer;
    const startedAtMs = this.#state.io.now();
    this.#view.activity('thinking');
    try {
      const turn = await this.#conversation.ask(message, {
        signal: running.signal,
        onText: (piece) => {
          this.#endThought();
          if (this.#toolsRunning.size === 0) this.#view.activity('answering');
          answer.add(piece);
        },
        attachments: this.#state.attachments.map(({ mediaId }) => ({ mediaId })),
        survives: { onGap: () => this.#restarted(answer) },
      });
      this.#finish(answer);
      await this.#stopping;
      this.#state.attachments.length = 0;
      this.#state.tokens += turn.usage?.total_tokens ?? 0;
      const note = finishNote(turn);
      if (note !== undefined) this.#view.note(note, 'yellow');
      const tookMs = this.#state.io.now() - startedAtMs;
      const took = tookMs < 1000 ? '' : ` · ${renderDuration(tookMs)}`;
      if (this.#isRich && turn.usage !== undefined) this.#view.note(`${turn.usage.total_tokens} tokens${costText(turn.costUsd)}${took}\n`, 'dim');
    } catch (error) {
      this.#finish(answer);
      await this.#stopping;
      this.#fail(error);
      // Nothing that was written is lost.
      this.#view.restore(message);
    } finally {
      this.#running = undefined;
    }
  }

  #finish(answer: AnswerView): void {
    this.#endThought();
    answer.end();
    this.#answer = undefined;
    this.#toolsRunning.clear();
    this.#view.activity(undefined);
  }

  #fail(error: unknown): void {
    const { message, hint } = describeFailure(error);
    this.#view.note(`error: ${message}`, 'red');
    if (hint !== undefined) this.#view.note(`hint: ${hint}`);
  }

  #restarted(answer: AnswerView): void {
    answer.pause();
    this.#view.note('The connection was lost: the answer starts again.', 'yellow');
  }

  #stop(): boolean {
    const running = this.#running;
    if (running === undefined || running.signal.aborted) return false;
    running.abort();
    this.#stopping = this.#stopTurn();
    return true;
  }

  async #stopTurn(): Promise<void> {
    try {
      await stopTurn(this.#conversation);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Returns true for a message to the running answer. */
  #steer(text: string): boolean {
    const message = /^\s*\/steer\s+(\S[^]*)$/.exec(text)?.[1];
    const { kept } = this.#conversation;
    if (message === undefined || kept === undefined || this.#running === undefined) return false;
    void this.#passOn(message.trim(), kept);
    return true;
  }

  async #passOn(message: string, { address }: KeptConversation): Promise<void> {
    try {
      await this.#client.call('session.steer', { ...address, message });
      this.#view.note(`The agent has your message: ${plainText(shorten(message, 80))}`, 'dim');
    } catch (error) {
      this.#fail(error);
      // Nothing that was written is lost.
      this.#view.restore(message);
    }
  }

  #follow(): Promise<void> {
    return followConversations(
      this.#client,
      {
        watched: () => (this.#conversation.kept === undefined ? [] : [this.#conversation.kept.watched]),
        onEvent: (event) => this.#onEvent(event),
        onConnection: (state) => {
          if (state === 'lost') this.#view.note('Connection lost: reconnecting.', 'yellow');
          else {
            this.#view.note('Connected again.', 'green');
            void this.#askPending();
          }
        },
      },
      this.#over.signal,
    );
  }

  #onEvent({ kind, payload }: LiveEvent): void {
    switch (kind) {
      case 'message:thinking':
        if (this.#thought === '') this.#thoughtSinceMs = this.#state.io.now();
        this.#thought += payload.delta;
        return this.#view.thinking(this.#thought);
      case 'tool:started':
        this.#endThought();
        this.#answer?.pause();
        this.#output = '';
        this.#toolsRunning.set(payload.callId, toolText(payload));
        return this.#showTools();
      case 'tool:output':
        this.#output = (this.#output + payload.delta).slice(-2_000);
        return this.#view.thinking(this.#output);
      case 'tool:finished':
        return this.#toolFinished(payload);
      case 'approval:requested':
        return this.#queueQuestion(payload);
      case 'approval:resolved':
        return this.#asked.get(payload.requestId)?.abort(`${payload.approved ? 'Approved' : 'Denied'} by ${payload.approvedBy}.`);
      default:
        return undefined;
    }
  }

  #toolFinished({ callId, outcome, durationMs, result, ...call }: EventPayload<'tool:finished'>): void {
    this.#toolsRunning.delete(callId);
    this.#view.thinking(undefined);
    const took = durationMs < 1000 ? `${durationMs} ms` : `${(durationMs / 1000).toFixed(1)} s`;
    const [mark, ending, style] = outcomes[outcome];
    this.#answer?.pause();
    this.#view.note(`${mark} ${toolText(call)} · ${ending === '' ? took : `${ending}, ${took}`}`, style);
    if (this.#isRich && result !== undefined && result.trim() !== '') this.#view.note(previewOf(result), 'dim');
    this.#showTools();
  }

  #showTools(): void {
    const [first] = this.#toolsRunning.values();
    if (this.#running === undefined) return;
    this.#view.activity(first ?? 'thinking');
  }

  /** Folds the reasoning into one line that stays. */
  #endThought(): void {
    if (this.#thought === '') return;
    this.#view.thinking(undefined);
    this.#view.note(
      `Thought for ${renderDuration(this.#state.io.now() - this.#thoughtSinceMs)}: ${shorten(this.#thought.trim().replaceAll(/\s+/g, ' '), 160)}`,
      'dim',
    );
    this.#thought = '';
  }

  /** Asks about calls that waited before the chat was opened, or while the connection was lost. */
  async #askPending(): Promise<void> {
    const ref = this.#conversation.kept?.watched.ref;
    if (ref === undefined) return;
    try {
      const { requests } = await this.#client.call('admin.approval.pending', {});
      for (const request of requests) if (request.conversationRef === ref) this.#queueQuestion({ ...request, timestamp: request.createdAt });
    } catch (error) {
      // A token that may not decide is not asked.
      if (!(error instanceof GatehouseError)) throw error;
    }
  }

  #queueQuestion(request: Request): void {
    if (this.#asked.has(request.requestId)) return;
    const gone = new AbortController();
    this.#asked.set(request.requestId, gone);
    this.#asking = this.#asking.then(() => this.#askAbout(request, gone.signal)).catch((error: unknown) => this.#fail(error));
  }

  async #askAbout(request: Request, gone: AbortSignal): Promise<void> {
    const { requestId, toolName, action, params, reason, trustLevel } = request;
    const rule = ruleFor(request);
    this.#view.activity('waiting for you');
    this.#answer?.pause();
    const key = await this.#view.choose(
      {
        lines: [
          `May the agent do this? ${toolText({ toolName, description: action })}`,
          ...revealedJson(params)
            .split('\n')
            .map((line) => `  ${line}`),
          `Asked because of ${plainText(reason)}${trustLevel === 'tainted' ? '; the model has read external content' : ''}.`,
          ...(typeof rule === 'string' ? [`There is no "always" for it: ${plainText(rule)}.`] : []),
        ],
        options: [{ key: 'y', label: 'yes' }, { key: 'n', label: 'no' }, ...(typeof rule === 'string' ? [] : [{ key: 'a', label: 'always' }])],
      },
      AbortSignal.any([gone, this.#over.signal]),
    );
    this.#showTools();
    if (key === undefined) {
      if (typeof gone.reason === 'string') this.#view.note(gone.reason);
      return;
    }
    if (key === 'a' && typeof rule !== 'string') await this.#allowAlways(rule);
    try {
      await this.#client.call('admin.approval.resolve', { requestId, approved: key !== 'n', approvedBy: 'terminal' });
      this.#view.note(key === 'n' ? 'Denied.' : 'Allowed.', key === 'n' ? 'red' : 'green');
    } catch (error) {
      if (!(error instanceof ConflictError || error instanceof NotFoundError)) throw error;
      this.#view.note(describeFailure(error).message);
    }
  }

  async #allowAlways(rule: Exclude<ReturnType<typeof ruleFor>, string>): Promise<void> {
    try {
      await addRule(this.#client, rule);
      this.#view.note(`Added to config.yaml, in front of the other rules:\n${plainLines(ruleText(rule))}`);
    } catch (error) {
      this.#view.note(`Allowed once, but the rule was not written: ${describeFailure(error).message}`, 'yellow');
    }
  }
}

function costText(costUsd: Turn['costUsd']): string {
  if (costUsd === undefined || costUsd === null) return '';
  return costUsd > 0 && costUsd < 0.0001 ? ' · < $0.0001' : ` · $${costUsd.toFixed(4)}`;
}

const outcomes = {
  ok: ['✓', '', 'dim'],
  error: ['✗', 'failed', 'red'],
  denied: ['✗', 'denied', 'red'],
  background: ['…', 'continues in the background', 'dim'],
} as const;

function toolText({ toolName, description }: { readonly toolName: string; readonly description: string }): string {
  // Most descriptions begin with the name.
  return plainText(description.startsWith(toolName) ? description : `${toolName} ${description}`);
}

function previewOf(result: string): string {
  const lines = result.trimEnd().split('\n');
  const shown = lines.slice(0, maxResultLines).map((line) => `  ${plainText(shorten(line, 300))}`);
  const more = lines.length - shown.length;
  return [...shown, ...(more > 0 ? [`  … ${more} more lines`] : [])].join('\n');
}

function plainLines(text: string): string {
  return text
    .split('\n')
    .map((line) => `  ${plainText(line)}`)
    .join('\n');
}
