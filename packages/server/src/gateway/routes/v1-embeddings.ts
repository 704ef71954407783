import { EmbeddingRequest, ExtendedEmbeddingRequest } from '@gatehouse/contract';
import type * as z from 'zod';
import { AppError } from '../../kernel/app-error.ts';
import type { CallContext } from '../../kernel/call-context.ts';
import type { Embeddings } from '../../llm/embeddings.ts';
import { ModelError } from '../../llm/model.ts';
import { readJsonBody } from '../body.ts';
import type { HttpCall } from '../http-call.ts';
import { sendJson } from '../reply.ts';
import { parseInput } from '../parse-input.ts';
import { parseStrictly } from './v1-strict.ts';

/** Embeds for a caller: within the budgets, and charged. Fails with ModelError, or with `rate_limited` when a budget is used up. */
export type EmbedTexts = (texts: readonly string[], call: CallContext, dimensions?: number) => Promise<Embeddings>;

/** `POST /v1/embeddings` (http-gateway.md §2.7, §4.4). */
export function createEmbeddingsRoute(deps: {
  readonly embed: EmbedTexts | undefined;
  /** The model that `embed` uses. */
  readonly model: { readonly provider: string; readonly model: string } | undefined;
  /** `gateway.compat.fields`; a token’s own setting wins. */
  readonly fields: () => 'strict' | 'extended';
  readonly bodyLimit: () => number;
}): (call: HttpCall) => Promise<void> {
  return async (call) => {
    const body = await readJsonBody(call, deps.bodyLimit());
    const isExtended = (call.identity?.compat?.fields ?? deps.fields()) === 'extended';
    const request: z.output<ReturnType<typeof ExtendedEmbeddingRequest>> = isExtended
      ? parseInput(ExtendedEmbeddingRequest(), body, 'fields')
      : parseStrictly(EmbeddingRequest(), ExtendedEmbeddingRequest(), body, 'fields');
    if (deps.embed === undefined || deps.model === undefined) throw new AppError('not_found', 'No embedding provider configured');
    const { provider, model: known } = deps.model;
    if (request.model !== known && request.model !== `${provider}/${known}`)
      throw new AppError('not_found', `Model not found: ${request.model}`, { param: 'model' });
    const texts = typeof request.input === 'string' ? [request.input] : request.input;
    const { model, vectors } = await embed(deps.embed, texts, call.context(), request.dimensions ?? undefined);
    const tokens = texts.reduce((sum, text) => sum + Math.ceil(text.length / 4), 0);
    sendJson(call, 200, {
      object: 'list',
      data: vectors.map((vector, index) => ({
        object: 'embedding',
        embedding: request.encoding_format === 'base64' ? littleEndianFloats(vector) : [...vector],
        index,
      })),
      model,
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    });
  };
}

async function embed(embedTexts: EmbedTexts, texts: readonly string[], call: CallContext, dimensions: number | undefined): Promise<Embeddings> {
  try {
    return await embedTexts(texts, call, dimensions);
  } catch (error) {
    // A budget that waiting does not free.
    if (error instanceof AppError && error.code === 'rate_limited' && error.details.retryAfterMs === undefined)
      throw new AppError('invalid_params', error.message, { reason: 'budget_exceeded' });
    if (!(error instanceof ModelError)) throw error;
    const retry = error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs };
    if (error.kind === 'rate_limit') throw new AppError('rate_limited', 'The embedding provider asks to wait', retry);
    if (error.kind === 'aborted') throw new AppError('cancelled', 'The client disconnected');
    if (error.kind === 'bad_request' || error.kind === 'context_length')
      throw new AppError('invalid_params', `The embedding provider refused the request: ${error.message}`, { reason: 'upstream_rejected' });
    throw new AppError('internal', 'The embedding provider failed', { cause: error });
  }
}

/** Every platform that Node supports is little-endian: the bytes in memory are the bytes of the response. */
function littleEndianFloats(vector: Float32Array): string {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64');
}
