import { type ChatRequest, type Client, GatehouseError, type TurnRequest, type Usage } from '@gatehouse/client';
import { type Io, printLine } from '../io.ts';

/** The outcome of a turn: the text so far when it was stopped. */
export interface Turn {
  readonly content: string;
  readonly finishReason: string | undefined;
  readonly usage: Usage | undefined;
  /** US dollars; null or absent when the price is not known. */
  readonly costUsd?: number | null | undefined;
  readonly wasStopped: boolean;
  /** Absent when no conversation is kept, and when it was stopped. */
  readonly traceId?: string | undefined;
  readonly conversationRef?: string | undefined;
}

export interface TurnOptions {
  /** Streams a turn; aborting stops it and keeps the text so far. */
  readonly signal: AbortSignal;
  readonly onText: (piece: string) => void;
  /**
   * Survives the loss of the connection and a restart of the daemon: the turn is one and the same by its key. Without it
   * the server stops the turn as soon as the client is gone.
   */
  readonly survives?: {
    /** Called when the text so far is not continued: what follows is the answer from its start, or a later part of it. */
    readonly onGap: () => void;
  };
  readonly attachments?: readonly { readonly mediaId: string }[];
}

export async function runTurn(client: Client, request: ChatRequest, { signal, onText }: TurnOptions): Promise<Turn> {
  let content = '';
  let finishReason: string | undefined;
  let usage: Usage | undefined;
  try {
    for await (const event of client.streamChat(request, { signal })) {
      if (event.type === 'finish') finishReason = event.turnReason ?? event.reason;
      if (event.type === 'usage') usage = event.usage;
      if (event.type === 'delta') {
        content += event.text;
        onText(event.text);
      }
    }
  } catch (error) {
    if (!signal.aborted || error instanceof GatehouseError) throw error;
  }
  return { content, finishReason, usage, wasStopped: signal.aborted };
}

/** A daemon that starts again takes seconds, one that is updated longer; the person can stop waiting at any time. */
const patience = { retries: 10_000, initialDelayMs: 250, maxDelayMs: 3_000 };

/** Streams a turn of a kept conversation. */
export async function runKeptTurn(client: Client, request: TurnRequest, { signal, onText, survives, attachments = [] }: TurnOptions): Promise<Turn> {
  let content = '';
  let hasGap = false;
  let finishReason: string | undefined;
  let usage: Usage | undefined;
  let costUsd: number | null | undefined;
  let traceId: string | undefined;
  let conversationRef: string | undefined;
  const body = attachments.length === 0 ? request : { ...request, attachments: [...attachments] };
  // Without an idempotency key, Ctrl-C stops the turn at once instead of after the grace period.
  const options = survives === undefined ? { signal, idempotencyKey: false as const } : { signal, retry: patience };
  try {
    for await (const event of client.streamTurn(body, options)) {
      if (event.type === 'token') {
        content += event.delta;
        onText(event.delta);
      } else if (event.type === 'gap') {
        content = '';
        hasGap = true;
        survives?.onGap();
      } else {
        const { input, output, total } = event.result.tokensUsed;
        usage = { prompt_tokens: input, completion_tokens: output, total_tokens: total };
        ({ finishReason, costUsd, traceId, conversationRef } = event.result);
        // The part that was missed.
        if (hasGap && content !== event.result.response) onText(content === '' ? event.result.response : `\n\n${event.result.response}`);
        if (hasGap) content = event.result.response;
      }
    }
  } catch (error) {
    if (!signal.aborted || error instanceof GatehouseError) throw error;
  }
  return { content, finishReason, usage, costUsd, wasStopped: signal.aborted, traceId, conversationRef };
}

/** Returns why an answer may be incomplete. */
export function finishNote({ finishReason, wasStopped }: Turn): string | undefined {
  if (wasStopped) return '(stopped)';
  return finishReason === undefined || finishReason === 'stop' || finishReason === 'command' ? undefined : `(ended early: ${finishReason})`;
}

/** Reports why an answer may be incomplete. */
export function noteFinish(turn: Turn, io: Io): void {
  const note = finishNote(turn);
  if (note !== undefined) printLine(io.stderr, note);
}
