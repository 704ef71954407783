import * as fc from 'fast-check';

/** Markdown with the words that people must see, in their order. */
export interface Answer {
  readonly source: string;
  readonly words: readonly string[];
}

const joined = (answers: readonly Answer[], separator: string): Answer => ({
  source: answers.map(({ source }) => source).join(separator),
  words: answers.flatMap(({ words }) => words),
});

const word = fc.oneof(
  { weight: 8, arbitrary: fc.nat(99_999).map((n) => `w${n}e`) },
  { weight: 1, arbitrary: fc.constantFrom('日本語', 'שלום\u200f', 'naïve', '👩‍👩‍👧‍👦z', '🇩🇪q') },
  { weight: 1, arbitrary: fc.tuple(fc.nat(9), fc.nat(700)).map(([n, length]) => `l${String(n).repeat(length)}g`) },
);

const around =
  (before: string, after: string) =>
  (content: string): Answer => ({ source: `${before}${content}${after}`, words: content.split(' ') });
const words = fc.array(word, { minLength: 1, maxLength: 4 }).map((all) => all.join(' '));
const silent = (source: string): Answer => ({ source, words: [] });

const inline: fc.Arbitrary<Answer> = fc.oneof(
  { weight: 6, arbitrary: words.map(around('', '')) },
  words.map(around('**', '**')),
  words.map(around('*', '*')),
  words.map(around('~~', '~~')),
  words.map(around('***', '***')),
  words.map(around('`', '`')),
  words.map(around('**see `', '` there**')),
  words.map(around('[', '](https://a.example/x?y=1&z=2)')),
  words.map(around('[', '][ref]')),
  words.map(around('[', '](javascript:alert(1))')),
  words.map(around('![', '](http://b.example/i.png)')),
  words.map(around('<b onclick="x">', '</b>')),
  fc
    .constantFrom(
      '<!channel>',
      '@everyone',
      '<@U123>',
      '@channel',
      '<script>',
      '</pre>',
      '&amp;',
      '&lt;b&gt;',
      '\\*',
      '\\`',
      '<',
      '>',
      '&',
      '*',
      '_',
      '`',
      '``',
      '[',
      '](',
      '|',
      '~',
      '"',
    )
    .map(silent),
  fc
    .constantFrom('https://c.example/a_b_c', 'www.d.example', '<https://e.example>', 'MEDIA:/etc/passwd', '# x', '- x', '1. x', '> x', '---')
    .map(silent),
);

const paragraph = fc
  .tuple(fc.array(inline, { minLength: 1, maxLength: 8 }), fc.constantFrom(' ', '\n', '  \n'))
  .map(([parts, separator]) => joined(parts, separator));
const line = fc.array(inline, { minLength: 1, maxLength: 4 }).map((parts) => joined(parts, ' '));

const code = fc
  .tuple(
    fc.constantFrom('```', '~~~', '````'),
    fc.constantFrom('', 'ts', 'c++ title="x"', '"><script>'),
    fc.array(fc.oneof(words, fc.constantFrom('', '  <b>&amp;', '``', '~~', '@channel', '**')), { maxLength: 8 }),
  )
  .map(([fence, info, lines]) => ({
    source: `${fence}${info}\n${lines.join('\n')}\n${fence}`,
    words: lines.flatMap((one) => (/^\p{L}|👩|🇩/u.test(one) ? one.split(' ') : [])),
  }));
const nestedFence = words.map((text) => ({ source: `~~~~md\n\`\`\`js\n${text}\n\`\`\`\n~~~~`, words: text.split(' ') }));

const cell = words.map(around('', ''));
const table = fc.integer({ min: 1, max: 4 }).chain((columns) => {
  const row = fc.array(cell, { minLength: columns, maxLength: columns }).map((cells) => {
    const { source, words: all } = joined(cells, ' | ');
    return { source: `| ${source} |`, words: all };
  });
  return fc.tuple(row, fc.array(row, { maxLength: 6 })).map(([head, rows]) => {
    const rule: Answer = { source: `|${' --- |'.repeat(columns)}`, words: [] };
    return joined([head, rule, ...rows], '\n');
  });
});

const { block } = fc.letrec<{ block: Answer; blocks: Answer }>((tie) => ({
  blocks: fc.array(tie('block'), { minLength: 1, maxLength: 2 }).map((all) => joined(all, '\n\n')),
  block: fc.oneof(
    { maxDepth: 2 },
    { weight: 5, arbitrary: paragraph },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.integer({ min: 1, max: 6 }), line)
        .map(([depth, { source, words: all }]) => ({ source: `${'#'.repeat(depth)} ${source}`, words: all })),
    },
    { weight: 1, arbitrary: line.map(({ source, words: all }) => ({ source: `- [x] ${source}\n- [ ] ${source}`, words: all })) },
    { weight: 1, arbitrary: code },
    { weight: 1, arbitrary: nestedFence },
    { weight: 1, arbitrary: table },
    { weight: 1, arbitrary: words.map((text) => ({ source: `<div onclick="x">\n${text}\n</div>`, words: text.split(' ') })) },
    { weight: 1, arbitrary: fc.constantFrom('---', '***', '<!-- -->').map(silent) },
    { weight: 1, arbitrary: tie('blocks').map(({ source, words: all }) => ({ source: source.replaceAll(/^/gm, '> '), words: all })) },
    {
      weight: 2,
      arbitrary: fc
        .tuple(fc.array(tie('blocks'), { minLength: 1, maxLength: 3 }), fc.constantFrom('- ', '* ', '7. '), fc.constantFrom('\n', '\n\n'))
        .map(([items, marker, separator]) =>
          joined(
            items.map(({ source, words: all }) => ({
              source: `${marker}${source.replaceAll('\n', `\n${' '.repeat(marker.trim().split(' ')[0]?.length === 2 ? 3 : 2)}`)}`,
              words: all,
            })),
            separator,
          ),
        ),
    },
  ),
}));

/** Answers of all kinds of blocks, with a definition of the links that they refer to. */
export const answer: fc.Arbitrary<Answer> = fc
  .array(block, { minLength: 1, maxLength: 4 })
  .map((blocks) => joined([...blocks, silent('[ref]: https://ref.example/page')], '\n\n'));
