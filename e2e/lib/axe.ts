import axe from 'axe-core';
import type { Page } from 'playwright-core';

interface Finding {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

/** The rules whose outcome depends on colours. */
const colourRules = ['color-contrast', 'link-in-text-block'];

/** Returns serious accessibility findings of the page, of all rules by default; its context needs `bypassCSP` to inject the checker. */
export async function seriousFindings(page: Page, rules?: readonly string[]): Promise<string[]> {
  if (!(await page.evaluate('"axe" in globalThis'))) await page.evaluate(axe.source);
  const options = { resultTypes: ['violations'], ...(rules !== undefined && { runOnly: rules }) };
  const findings: readonly Finding[] = await page.evaluate(`axe.run(${JSON.stringify(options)}).then(({ violations }) => violations)`);
  return findings
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary}`));
}

/** Returns serious accessibility findings of a light page, and then those that depend on colours while it is dark. */
export async function findingsInBothSchemes(page: Page): Promise<string[]> {
  const light = await seriousFindings(page);
  // The colour of an element changes in a transition, which starts those of the elements inside: each level is drawn once more.
  await page.evaluate(() => {
    if (document.getElementById('without-transitions') !== null) return;
    const style = Object.assign(document.createElement('style'), { id: 'without-transitions' });
    style.textContent = '*, *::before, *::after { transition: none !important }';
    document.head.append(style);
  });
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.waitForFunction(() => document.getAnimations().length === 0);
  const dark = await seriousFindings(page, colourRules);
  await page.emulateMedia({ colorScheme: 'light' });
  return [...light, ...dark.map((finding) => `dark: ${finding}`)];
}
