/** Longest arguments of a call by name. */
const maxArguments = 8_000;

/** A message that calls a skill: `/name`, or `/skill:name`, and what follows. */
export function readInvocation(message: string): { readonly name: string; readonly args: string } | undefined {
  const match = /^\s{0,8}\/(?:skill:)?([a-z0-9-]{1,64})(?:\s+([\s\S]*))?$/.exec(message);
  return match?.[1] === undefined ? undefined : { name: match[1], args: (match[2] ?? '').trim().slice(0, maxArguments).toWellFormed() };
}

/** Splits into arguments; quotes group several words. */
function splitArguments(args: string): string[] {
  return [...args.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, double, single, bare]) => double ?? single ?? bare ?? '');
}

/**
 * Inserts the arguments into a body: `$ARGUMENTS` and `$@` are all of them, `$1` … `$9` one, `${@:N}` those from the Nth on,
 * `{name}` the next one each. Unused arguments are appended.
 */
export function fillArguments(body: string, args: string): string {
  const words = splitArguments(args);
  const used = new Set<number>();
  const named = new Map<string, number>();
  const useFrom = (first: number) => {
    for (let index = first; index < words.length; index += 1) used.add(index);
    return words.slice(first).join(' ');
  };
  const filled = body.replace(
    /\$ARGUMENTS\b|\$@|\$\{@:(\d{1,2})\}|\$(\d)(?!\d)|(?<![${\w]){([a-z][a-z0-9_-]{0,40})}/gi,
    (whole, from?: string, position?: string, name?: string) => {
      if (name !== undefined) {
        const index = named.get(name) ?? (words.length > named.size ? named.size : -1);
        if (index < 0) return whole;
        named.set(name, index);
        used.add(index);
        return words[index] ?? whole;
      }
      if (position !== undefined) {
        const index = Number(position) - 1;
        if (index < 0) return whole;
        used.add(index);
        return words[index] ?? '';
      }
      if (from !== undefined) return useFrom(Math.max(0, Number(from) - 1));
      useFrom(0);
      return args;
    },
  );
  const left = words.filter((_word, index) => !used.has(index));
  return left.length === 0 ? filled : `${filled}\n\nArguments: ${left.join(' ')}`;
}
