import { describe, expect, it } from 'vitest';
import { WebhooksConfig } from '../config.ts';
import { normalizePath, wantsPath, wantsSource } from './match.ts';
import { rulesOf } from './rules.ts';

/** Plain implementation of the six rules of http-gateway.md §4.8. */
function oracle(
  path: string,
  payload: { source?: unknown },
  mappings: readonly { id: string; match: { path?: string; source?: string } }[],
): string | undefined {
  const clean = (text: string) =>
    text
      .split('/')
      .filter(
        (part, index, all) =>
          part !== '' ||
          (index > 0 && index < all.length - 1 && all.slice(0, index).some((one) => one !== '') && all.slice(index).some((one) => one !== '')),
      )
      .join('/')
      .toLowerCase();
  for (const { id, match } of mappings) {
    const isPath = match.path === undefined ? true : clean(path) === clean(match.path);
    const isSource = match.source === undefined ? true : payload.source === match.source;
    if (isPath && isSource) return id;
  }
  return undefined;
}

/** Returns a seeded random number generator. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 4_294_967_296) * below);
  };
}

describe('routing (C13)', () => {
  it('agrees with the oracle on 200 random requests and lists of mappings', () => {
    const random = randomFrom(4766);
    const paths = ['github', '/GitHub/', 'a/b', '//a/b//', 'a//b', 'A/B/', 'stripe', 'x'];
    const sources = ['ci', 'CI', 'shop', ''];
    const pick = <T>(list: readonly T[]): T | undefined => list[random(list.length + 1)];
    let matched = 0;
    for (let round = 0; round < 200; round += 1) {
      const mappings = Array.from({ length: 1 + random(6) }, (_, index) => {
        const [path, source] = [pick(paths), pick(sources.slice(0, 3))];
        return { id: `m${index}`, match: { ...(path !== undefined && { path }), ...(source !== undefined && { source }) } };
      });
      const path = pick(paths) ?? 'other';
      const source = pick(sources);
      const rules = rulesOf(WebhooksConfig().parse({ mappings }));
      const found = rules.find(({ mapping }) => wantsPath(mapping.match, normalizePath(path)) && wantsSource(mapping.match, source))?.mapping.id;
      expect(found, JSON.stringify({ path, source, mappings })).toBe(oracle(path, { source }, mappings));
      if (found !== undefined) matched += 1;
    }
    expect(matched).toBeGreaterThan(50);
    expect(matched).toBeLessThan(200);
  });

  it("checks presets before mappings that match every path, and after mappings of the preset's path", () => {
    const ids = (mappings: object[]) =>
      rulesOf(WebhooksConfig().parse({ presets: ['GMAIL', 'github', 'none'], mappings })).map(({ mapping }) => mapping.id);
    expect(ids([{ id: 'own', match: { path: 'github' } }, { id: 'all' }])).toEqual(['own', 'github', 'gmail', 'all']);
    expect(ids([{ id: 'ci', match: { source: 'ci' } }])).toEqual(['github', 'gmail', 'ci']);
    expect(ids([{ id: 'github', preset: 'github' }])).toEqual(['github', 'github-preset', 'gmail']);
  });
});

describe('the configuration section', () => {
  const issues = (webhooks: object) =>
    WebhooksConfig()
      .safeParse(webhooks)
      .error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ?? [];
  const signing = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

  it.each<[object, RegExp]>([
    [{ token: 'short' }, /^token: expected at least 32/],
    [{ path: '/api/hooks' }, /^path: is a path used by the gateway itself/],
    [{ mappings: [{ id: 'a', deliver: true }] }, /deliver/],
    [{ mappings: [{ id: 'a' }, { id: 'a' }] }, /^mappings\.1\.id: is the id of an earlier/],
    [{ mappings: [{ id: 'webhook' }] }, /^mappings\.0\.id: is the id of the strict/],
    [{ mappings: [{ id: 'a', wakeMode: 'now' }] }, /^mappings\.0\.wakeMode: has no effect/],
    [{ mappings: [{ id: 'a', action: 'wake', model: 'm' }] }, /^mappings\.0\.model: has no effect/],
    [{ mappings: [{ id: 'a', action: 'wake', timeoutSeconds: 5 }] }, /^mappings\.0\.timeoutSeconds: has no effect/],
    [{ mappings: [{ id: 'a', replay: 'signed' }] }, /^mappings\.0\.secret: is missing/],
    [{ mappings: [{ id: 'a', replay: 'signed', secret: 'x'.repeat(40) }] }, /^mappings\.0\.secret: expected whsec_/],
    [{ mappings: [{ id: 'a', replay: 'signed', secret: signing, algorithm: 'sha512' }] }, /^mappings\.0\.algorithm: has no effect/],
    [{ mappings: [{ id: 'a', replay: 'signed', secret: signing, preset: 'github' }] }, /^mappings\.0\.replay: expected/],
  ])('%j is refused', (webhooks, message) => expect(issues(webhooks).join('\n')).toMatch(message));

  it('accepts valid values', () => {
    expect(issues({ token: 'x'.repeat(32), presets: ['github', 'unknown'], mappings: [{ id: 'a', replay: 'signed', secret: signing }] })).toEqual([]);
  });
});
