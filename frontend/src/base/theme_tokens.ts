/** The colors of both themes as the style sheet defines them: for tests, not for pages. */
import css from './tokens.css?raw';

export function tokensOf(selector: string): Map<string, string> {
  const from = css.indexOf(`${selector} {`);
  const block = css.slice(from, css.indexOf('\n}', from));
  return new Map(
    [...block.matchAll(/(--[\w-]+):\s*(#[0-9a-f]{6})/gi)].map((match) => [
      match[1] as string,
      match[2] as string,
    ]),
  );
}

export const light = tokensOf(':root');
export const dark = new Map([...light, ...tokensOf(':root.dark')]);
