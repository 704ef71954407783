import type { GatedCall, GateRule } from '../../../../runtime/tool-gate.ts';
import { compilePatterns } from '../../../../runtime/tool-policy.ts';
import type { ApprovalRule } from '../config.ts';

export type FindRule = (call: Pick<GatedCall, 'tool' | 'args' | 'turn'>) => GateRule | undefined;

/** Compiles the operator's rules once; the first one that matches a call is returned. */
export function compileRules(rules: readonly ApprovalRule[]): FindRule {
  const compiled = rules.map((rule, index) => {
    const fitsTool = compilePatterns(rule.tools);
    const agents = rule.agents && new Set(rule.agents);
    const origins = rule.origins && new Set(rule.origins);
    const globs = Object.entries(rule.match ?? {});
    const found: GateRule = { action: rule.action, tainted: rule.tainted, name: `approvals.rules[${index}]` };
    return {
      found,
      fits: ({ tool, args, turn }: Parameters<FindRule>[0]) =>
        fitsTool(tool.name) &&
        agents?.has(turn.agentId) !== false &&
        origins?.has(turn.origin) !== false &&
        globs.every(([name, glob]) => matchesArgument(args, name, glob, rule.action)) &&
        (!rule.exact || hasNoOther(args, rule.match ?? {})),
    };
  });
  return (call) => compiled.find(({ fits }) => fits(call))?.found;
}

function hasNoOther(args: unknown, match: Readonly<Record<string, string>>): boolean {
  return typeof args === 'object' && args !== null && Object.keys(args).every((name) => Object.hasOwn(match, name));
}

/** Such a path may lead elsewhere than it reads: it never matches an allowing rule, and always matches a restricting one. */
const leadsElsewhere = /(?:^|[/\\"])\.{1,2}(?:[/\\"]|$)/;

function matchesArgument(args: unknown, name: string, glob: string, action: ApprovalRule['action']): boolean {
  if (typeof args !== 'object' || args === null || !Object.hasOwn(args, name)) return false;
  const value: unknown = Reflect.get(args, name);
  if (value === undefined) return false;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (leadsElsewhere.test(text)) return action !== 'auto';
  // Restricting rules match every spelling of a path or address; allowing rules only the given one.
  return (action === 'auto' ? [text] : spellingsOf(text)).some((each) => matchesGlob(each, glob));
}

function spellingsOf(text: string): readonly string[] {
  const url = /^\s*[a-z][a-z\d+.-]*:/i.test(text) ? URL.parse(text)?.href : undefined;
  const path = text.replaceAll(/(?<!:)\/{2,}/g, '/');
  return [
    text,
    path,
    path.replace(/(?<=[^/])\/$/, ''),
    ...(url === undefined ? [] : [url, url.replace(/^([a-z]+:\/\/[^/?#]*?)\.(?=[/:?#]|$)/, '$1')]),
  ];
}

/** `*` stands for any text, `?` for one character; time is at most the product of both lengths. */
export function matchesGlob(text: string, glob: string): boolean {
  let at = 0;
  let inGlob = 0;
  let star = -1;
  let starAt = 0;
  while (at < text.length) {
    const wanted = glob[inGlob];
    if (wanted === '*') {
      star = inGlob;
      starAt = at;
      inGlob += 1;
    } else if (wanted !== undefined && (wanted === '?' || wanted === text[at])) {
      at += 1;
      inGlob += 1;
    } else if (star !== -1) {
      starAt += 1;
      at = starAt;
      inGlob = star + 1;
    } else return false;
  }
  while (glob[inGlob] === '*') inGlob += 1;
  return inGlob === glob.length;
}
