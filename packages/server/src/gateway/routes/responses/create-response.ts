import { randomUUID } from 'node:crypto';
import { type ResponseObject, ResponseOutputItem, ResponseRequest } from '@gatehouse/contract';
import type { ResponseHistory, ResponseRow, ResponsesApi } from '../../../features/conversations/responses/api.ts';
import type { CompletionMessage, CompletionRequest, TurnOutcome, TurnsApi } from '../../../features/conversations/turns/api.ts';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { OperationCall } from '../../../kernel/db/operation.ts';
import type { Log } from '../../../kernel/log.ts';
import type { ModelMessage } from '../../../llm/model.ts';
import type { TurnSink } from '../../../runtime/turn.ts';
import { readJsonBody } from '../../body.ts';
import type { HttpCall } from '../../http-call.ts';
import { sendJson } from '../../reply.ts';
import { parseInput } from '../../parse-input.ts';
import { failureOf } from '../v1-failure.ts';
import { responseNames, toWireError } from '../v1-wire-error.ts';
import { closedResponse, openResponse, responseOfItem } from './response-items.ts';
import { type FindItem, toMessages } from './items-to-messages.ts';
import { inputItems } from './input-items.ts';
import { toCompletion } from './response-request.ts';
import { createCallNames } from './namespaces.ts';
import { streamResponse } from './stream-response.ts';

export interface ResponseDeps {
  readonly turns: TurnsApi;
  readonly responses: ResponsesApi;
  readonly bodyLimit: () => number;
  readonly clock: Clock;
  readonly log: Log;
  readonly keepAliveMs?: number | undefined;
}

const keptMs = 30 * 86_400_000;

/** One response in the making. */
export interface Answering {
  /** The response before any output. */
  readonly open: ResponseObject;
  /** Runs the turn; returns the response as stored, if it is stored. */
  run(sink?: TurnSink): Promise<{ readonly outcome: TurnOutcome; readonly response: ResponseObject }>;
}

/** `POST /v1/responses` (http-gateway.md §4.5, decisions §3). */
export function createResponseRoute(deps: ResponseDeps): (call: HttpCall) => Promise<void> {
  return async (call) => {
    const body = await readJsonBody(call, deps.bodyLimit());
    const request = parseInput(ResponseRequest(), body);
    const answering = await beginResponse(deps, request, call.context());
    if (request.stream === true) return streamResponse(deps, call, answering);
    const { outcome, response } = await answering.run();
    call.setHeader('x-gatehouse-finish-reason', outcome.finishReason);
    if (outcome.leftOut !== undefined) call.setHeader('x-gatehouse-left-out', String(outcome.leftOut));
    const failure = failureOf(outcome, 'input');
    if (failure !== undefined && outcome.text === '') throw failure;
    sendJson(call, 200, response);
  };
}

/** Responses that are not stored but can be continued on the socket that created them. */
export interface LocalResponses {
  find(id: string): ResponseHistory | undefined;
  keep(id: string, history: ResponseHistory): void;
}

/** Prepares a response from a request and everything before it; nothing runs yet. */
export async function beginResponse(
  deps: Pick<ResponseDeps, 'turns' | 'responses' | 'clock'>,
  request: ResponseRequest,
  context: CallContext,
  local?: LocalResponses,
): Promise<Answering> {
  const input = await toMessages(request.input, itemFinder(deps.responses, context));
  const previous = request.previous_response_id;
  const history = previous == null ? undefined : (local?.find(previous) ?? (await deps.responses.history(previous, context)));
  return prepare(deps, request, input, history, context, local);
}

function prepare(
  { turns, responses, clock }: Pick<ResponseDeps, 'turns' | 'responses' | 'clock'>,
  request: ResponseRequest,
  input: readonly CompletionMessage[],
  history: ResponseHistory | undefined,
  context: CallContext,
  local: LocalResponses | undefined,
): Answering {
  const completion = toCompletion(request, input, history);
  const createdAtMs = clock.now();
  const open = openResponse(`resp_${randomUUID()}`, Math.floor(createdAtMs / 1000), request);
  let closed: ResponseObject | undefined;
  const close = (outcome: TurnOutcome) => closedResponse(open, outcome, clock.now(), createCallNames(request));
  const system = input.flatMap((message) => (message.role === 'system' || message.role === 'developer' ? [message.content] : []));
  const rowOf = (response: ResponseObject, outcome: TurnOutcome, messages: readonly ModelMessage[]): ResponseRow => ({
    id: open.id,
    previousId: open.previous_response_id,
    principalId: context.identity.principalId,
    agentId: outcome.agentId,
    bodyJson: JSON.stringify(response),
    systemJson: JSON.stringify(system),
    messagesJson: JSON.stringify(messages),
    inputJson: JSON.stringify(inputItems(request.input, open.id)),
    createdAtMs,
    expiresAtMs: createdAtMs + keptMs,
  });
  function ended(outcome: TurnOutcome, added: readonly ModelMessage[], brought: readonly ModelMessage[]): readonly OperationCall[] {
    closed = close(outcome);
    // A failed response cannot be continued.
    if (closed.status === 'failed' || failedUnseen(outcome)) return [];
    const messages = [...brought, ...added];
    if (open.store) return [responses.keepCall(rowOf(closed, outcome, messages))];
    local?.keep(open.id, { system: [...(history?.system ?? []), ...system], messages: [...(history?.messages ?? []), ...messages] });
    return [];
  }
  return {
    open,
    async run(sink) {
      const asked: CompletionRequest = { ...completion, completionId: open.id, ...((open.store || local !== undefined) && { alongside: { ended } }) };
      const outcome = await turns.complete(asked, context, sink).catch((error: unknown) => {
        throw toWireError(error, responseNames);
      });
      return { outcome, response: closed ?? close(outcome) };
    },
  };
}

/** True for a failure that was answered by a status: its client never learns the id. */
function failedUnseen(outcome: TurnOutcome): boolean {
  return outcome.text === '' && failureOf(outcome, 'input') !== undefined;
}

/** Returns a lookup that reads each stored response once, however many of its items are referenced. */
export function itemFinder(responses: ResponsesApi, context: CallContext): FindItem {
  const read = new Map<string, Promise<Readonly<Record<string, unknown>>>>();
  return async (id, param) => {
    const missing = new AppError('not_found', `${param}: item not found: ${id}`, { param });
    const responseId = responseOfItem(id);
    if (responseId === undefined) throw missing;
    let body = read.get(responseId);
    if (body === undefined) read.set(responseId, (body = responses.get(responseId, context)));
    const { output } = await body.catch((error: unknown) => {
      throw error instanceof AppError && error.code === 'not_found' ? missing : error;
    });
    const item = Array.isArray(output) ? output.map((one) => ResponseOutputItem().parse(one)).find((one) => one.id === id) : undefined;
    if (item === undefined) throw missing;
    return item;
  };
}
