import * as z from 'zod';
import { once } from '../once.ts';

/** A reference of the last snapshot of the tab: `e12`, also as `@e12` or `ref=e12`; `f1e12` within a frame. */
export const BrowserRef = once(() =>
  z.string().regex(/^(?:@|ref=)?(?:f\d{1,6})?e\d{1,7}$/, 'expected a reference of the last snapshot, such as e12'),
);

const wait = () => z.int().min(500).max(60_000).optional().describe('Limit for this step in milliseconds; 8000 by default.');
const Modifiers = () =>
  z
    .array(z.enum(['Alt', 'Control', 'ControlOrMeta', 'Meta', 'Shift']))
    .max(5)
    .optional();
const Field = () =>
  z.strictObject({
    ref: BrowserRef(),
    type: z.enum(['text', 'checkbox', 'radio', 'select']).default('text'),
    value: z.union([z.string().max(16_384), z.boolean(), z.number()]).describe('A text, or whether it is checked.'),
  });

/** One step in a tab (json-rpc.md §4, `browser.act`). */
export const BrowserAct = once(() =>
  z.discriminatedUnion('kind', [
    z.strictObject({
      kind: z.literal('click'),
      ref: BrowserRef(),
      doubleClick: z.boolean().optional(),
      button: z.enum(['left', 'right', 'middle']).optional(),
      modifiers: Modifiers(),
      timeoutMs: wait(),
    }),
    z.strictObject({
      kind: z.literal('type'),
      ref: BrowserRef(),
      text: z.string().max(16_384).optional().describe('Replaces what the field contains.'),
      secret: z
        .string()
        .min(1)
        .max(128)
        .optional()
        .describe('Types the stored secret of this name instead; `browser.secrets` names the origins where it may be typed.'),
      submit: z.boolean().optional().describe('Presses Enter afterwards.'),
      slowly: z.boolean().optional().describe('Presses one key after the other, 75 ms each.'),
      timeoutMs: wait(),
    }),
    z.strictObject({
      kind: z.literal('press'),
      key: z.string().min(1).max(40).describe('A key such as `Enter`, `ArrowDown`, `a` or `Control+A`.'),
      ref: BrowserRef().optional().describe('Focused first.'),
      delayMs: z.int().min(0).max(5000).optional(),
      timeoutMs: wait(),
    }),
    z.strictObject({ kind: z.literal('hover'), ref: BrowserRef(), timeoutMs: wait() }),
    z.strictObject({ kind: z.literal('drag'), startRef: BrowserRef(), endRef: BrowserRef(), timeoutMs: wait() }),
    z.strictObject({ kind: z.literal('select'), ref: BrowserRef(), values: z.array(z.string().max(1000)).min(1).max(100), timeoutMs: wait() }),
    z.strictObject({ kind: z.literal('fill'), fields: z.array(Field()).min(1).max(100), timeoutMs: wait() }),
    z.strictObject({
      kind: z.literal('scroll'),
      ref: BrowserRef().optional().describe('Scrolled into view.'),
      dx: z.int().min(-100_000).max(100_000).optional(),
      dy: z.int().min(-100_000).max(100_000).optional(),
      timeoutMs: wait(),
    }),
    z.strictObject({ kind: z.literal('resize'), width: z.int().min(200).max(3840), height: z.int().min(200).max(2160) }),
    z
      .strictObject({
        kind: z.literal('wait'),
        timeMs: z.int().min(0).max(30_000).optional(),
        text: z.string().min(1).max(1000).optional(),
        textGone: z.string().min(1).max(1000).optional(),
        selector: z.string().min(1).max(1000).optional().describe('A CSS selector.'),
        url: z.string().min(1).max(2048).optional().describe('Waits until the address contains this.'),
        loadState: z.enum(['load', 'domcontentloaded', 'networkidle']).optional(),
        timeoutMs: z.int().min(1000).max(60_000).optional().describe('Limit in milliseconds; 20000 by default.'),
      })
      .describe('Waits for all that is named.'),
    z.strictObject({
      kind: z.literal('evaluate'),
      expression: z.string().min(1).max(20_000).describe('An expression of JavaScript, or a function that gets the element of `ref`.'),
      ref: BrowserRef().optional(),
      timeoutMs: wait(),
    }),
    z.strictObject({
      kind: z.literal('upload'),
      ref: BrowserRef().describe('A file field, or what opens the file chooser.'),
      paths: z.array(z.string().min(1).max(1024)).max(10).describe('Files of the workspace.'),
      timeoutMs: wait(),
    }),
    z
      .strictObject({ kind: z.literal('dialog'), accept: z.boolean(), promptText: z.string().max(4096).optional() })
      .describe('Answers the dialog that the tab shows.'),
    z.strictObject({ kind: z.enum(['back', 'forward', 'reload']), timeoutMs: wait() }),
    z.strictObject({ kind: z.literal('close') }).describe('Closes the tab.'),
  ]),
);
export type BrowserAct = z.output<ReturnType<typeof BrowserAct>>;
export type BrowserActKind = BrowserAct['kind'];
