import { type ChatRequest, type Client, GatehouseError, type TurnRequest, type Usage } from '@gatehouse/client';
import { type Io, printLine } from '../io.ts';

/** The outcome of a turn: the text so far when it was stopped. */
export interface Turn {
  readonly content: string;
  readonly finishReason: string | undefined;
  readonly usage: Usage | undefined;
  readonly wasStopped: boolean;
  /** Absent when no conversation is kept, and when it was stopped. */
  readonly traceId?: string | undefined;
}

export interface TurnOptions {
  /** Streams a turn; aborting stops it and keeps the text so far. */
  readonly signal: AbortSignal;
  readonly onText: (piece: string) => void;
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

/** Streams a turn of a kept conversation. Without an idempotency key, Ctrl-C stops the turn at once instead of after the grace period. */
export async function runKeptTurn(client: Client, request: TurnRequest, { signal, onText }: TurnOptions): Promise<Turn> {
  let content = '';
  let finishReason: string | undefined;
  let usage: Usage | undefined;
  let traceId: string | undefined;
  try {
    for await (const event of client.streamTurn(request, { signal, idempotencyKey: false })) {
      if (event.type === 'token') {
        content += event.delta;
        onText(event.delta);
      }
      if (event.type !== 'done') continue;
      const { input, output, total } = event.result.tokensUsed;
      usage = { prompt_tokens: input, completion_tokens: output, total_tokens: total };
      ({ finishReason, traceId } = event.result);
    }
  } catch (error) {
    if (!signal.aborted || error instanceof GatehouseError) throw error;
  }
  return { content, finishReason, usage, wasStopped: signal.aborted, traceId };
}

/** Reports why an answer may be incomplete. */
export function noteFinish({ finishReason, wasStopped }: Turn, io: Io): void {
  if (wasStopped) printLine(io.stderr, '(stopped)');
  else if (finishReason !== undefined && finishReason !== 'stop' && finishReason !== 'command')
    printLine(io.stderr, `(ended early: ${finishReason})`);
}
