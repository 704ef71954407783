import { describe, expect, it } from 'vitest';
import { ModelError, type ModelErrorKind } from '../llm/model.ts';
import { budgetExceeded, circuitOpen, endOfFailedCall, turnEnds } from './turn-end.ts';
import { ownFailureKinds, toPublicFailure } from './turn-failure.ts';

/** Every kind of failed model call, and whether work that outlives its request waits for the provider. */
const transientOf = {
  auth: true,
  billing: true,
  rate_limit: true,
  overloaded: true,
  server: true,
  network: true,
  timeout: true,
  bad_response: true,
  oversized: true,
  bad_request: false,
  context_length: false,
  aborted: false,
} satisfies Record<ModelErrorKind, boolean>;

const refused = { cap: 'budgets.perDayUsd', limit: 1, used: 1, message: 'used up' };
const failed = (error: unknown, over: Partial<Parameters<typeof endOfFailedCall>[1]> = {}) =>
  endOfFailedCall(error, { stopped: undefined, isSilent: true, ...over });

describe('the end of a turn', () => {
  it.each(Object.entries(transientOf))('after a model call that failed with %s reports whether it is transient: %s', (kind, transient) => {
    const error = new ModelError(kind as ModelErrorKind, 'Provider "local" answered:\n no', { retryAfterMs: 49_001 });
    const { failure } = failed(error);
    expect(failure).toMatchObject({ kind, transient, retryAfterMs: 49_001, cause: 'Provider "local" answered: no' });
    expect(failure?.message.includes('retry in 50 s')).toBe(transient);
  });

  it('has a verdict for each kind of the turn itself', () => {
    const own = [...Object.values(turnEnds), circuitOpen(1000), budgetExceeded(refused), budgetExceeded({ ...refused, isRevoked: true })];
    const found = new Map(
      own.flatMap((end) => ('failure' in end && end.failure !== undefined ? [[end.failure.kind as string, end.failure.transient]] : [])),
    );
    // These two are decided where an interrupted turn is resumed.
    const expected = ownFailureKinds.filter((kind) => kind !== 'unknown' && kind !== 'too_many_resumes');
    expect([...found.keys()].toSorted()).toEqual([...expected].toSorted());
    expect([...found].filter(([, transient]) => transient).map(([kind]) => kind)).toEqual(['circuit_open']);
  });

  it('is transient after a model that hung until the turn timed out, but not when the turn itself took too long', () => {
    const aborted = new ModelError('aborted', 'aborted');
    expect(failed(aborted, { stopped: 'timeout' }).failure).toMatchObject({ kind: 'timeout', transient: true });
    expect(failed(aborted, { stopped: 'timeout', isSilent: false }).failure).toMatchObject({ kind: 'timeout', transient: false });
    expect(failed(aborted, { stopped: 'aborted' }).failure).toMatchObject({ kind: 'aborted', transient: false });
    expect(failed(new Error('bug')).failure).toMatchObject({ kind: 'error', transient: false });
  });

  it('shows clients neither the verdict nor the provider’s message', () => {
    const { failure } = failed(new ModelError('auth', 'Provider "local" answered 401: Incorrect API key', { retryAfterMs: 1 }));
    expect(failure === undefined ? undefined : toPublicFailure(failure)).toEqual({
      kind: 'auth',
      message: 'The model provider refused the credentials of this server; retry in 1 s',
      retryAfterMs: 1,
    });
  });
});
