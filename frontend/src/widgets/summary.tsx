/** The top of a page: verdict, tiles, legend, stacked bar and a list of facts. */
import type { ComponentChildren, VNode } from 'preact';
import { useContext } from 'preact/hooks';
import { exactText, quantity, unbroken, UNKNOWN } from '../base/units';
import { HeadingSentences, sentence, TILE_TERM, tipOf, whyUnknown, type Definition } from './definition';
import { RichText } from './rich_text';
import './summary.css';

/** From this many characters of a number and its unit on, all tiles of a row have smaller numbers. */
const LONG_FROM = 11;
const LEVEL_TOKENS = { good: '--good', warn: '--warn', bad: '--bad', unknown: '--line-strong' } as const;

export interface VerdictProps {
  level: keyof typeof LEVEL_TOKENS;
  text: string;
  details: readonly string[];
  /** The token of the category it is about; else the level's color. */
  token?: string;
  next: readonly { text: string; open?: () => void }[];
  /** Whether the server is still determining what limits the job. */
  isPending?: boolean;
}

function NextLine({ next }: { next: VerdictProps['next'] }): VNode {
  return (
    <p class="next">
      <span class="lead">Next:</span>
      {next.map(({ text, open }, i) => (
        <span key={i}>
          {open ? (
            <button type="button" class="link" onClick={open}>
              <RichText text={text} />
            </button>
          ) : (
            <RichText text={text} />
          )}
        </span>
      ))}
    </p>
  );
}

export function Verdict({ level, text, details, token, next, isPending = false }: VerdictProps): VNode {
  return (
    <section
      class="verdict"
      aria-label="Verdict"
      data-level={level}
      style={{ '--verdict': `var(${token ?? LEVEL_TOKENS[level]})` }}
    >
      <p>
        <RichText text={text} />
      </p>
      {details.map((detail, i) => (
        <p key={i}>
          <RichText text={detail} />
        </p>
      ))}
      {next.length > 0 && <NextLine next={next} />}
      {isPending && <p class="next">Checking what limits the job…</p>}
    </section>
  );
}

export interface TileProps extends Definition {
  title: string;
  value: number | boolean | null;
  unit: string;
  note: string;
}

function isLong({ value, unit }: TileProps): boolean {
  if (typeof value === 'boolean') return false;
  const shown = quantity(value, unit);
  return shown.number.length + shown.unit.length > LONG_FROM;
}

function Tile({ title, value, unit, note, ...definition }: TileProps): VNode {
  const isFlag = typeof value === 'boolean';
  const shown = isFlag ? { number: value ? 'Yes' : 'No', unit: '' } : quantity(value, unit);
  const more = value === null ? whyUnknown(note) : isFlag ? '' : exactText(value, unit);
  return (
    <div class="tile" data-term={TILE_TERM + title} {...tipOf(definition, more)}>
      <dt>{title}</dt>
      {/* The whole tile shows its sentence on hover, and here on keyboard focus. */}
      <dd tabIndex={0}>
        {unbroken(shown.number)}
        {shown.unit && <span>{shown.unit}</span>}
      </dd>
      <dd class="note">{unbroken(note)}</dd>
    </div>
  );
}

export function Tiles({ tiles }: { tiles: readonly TileProps[] }): VNode | null {
  if (!tiles.length) return null;
  const classes = ['tiles', tiles.length > 6 && 'many', tiles.some(isLong) && 'long'].filter(Boolean);
  // Five or six tiles in a narrow window form two rows of three; more than that in any but a wide one.
  const perRow = {
    '--per-row': tiles.length,
    '--per-narrow-row': tiles.length > 4 ? Math.ceil(tiles.length / 2) : tiles.length,
  };
  return (
    <div class="tiles-frame">
      <dl class={classes.join(' ')} aria-label="Key numbers" style={perRow}>
        {tiles.map((tile) => (
          <Tile key={tile.title} {...tile} />
        ))}
      </dl>
    </div>
  );
}

export interface LegendItem {
  name: string;
  title: string;
  token: string;
}

/** Names of the colors; a click hides and shows a series. */
export function Legend({
  items,
  hidden,
  onToggle,
}: {
  items: readonly LegendItem[];
  hidden: ReadonlySet<string>;
  onToggle: (name: string) => void;
}): VNode {
  return (
    <div class="legend" role="group" aria-label="Legend">
      {items.map(({ name, title, token }) => (
        <button key={name} type="button" aria-pressed={!hidden.has(name)} onClick={() => onToggle(name)}>
          <span class="dot" style={{ background: `var(${token})` }} />
          {title}
        </button>
      ))}
    </div>
  );
}

export interface StackPart {
  title: string;
  fraction: number;
  token: string;
  tip: string;
}

export function StackBar({ parts, label }: { parts: readonly StackPart[]; label: string }): VNode {
  return (
    <div class="stack-bar" role="img" aria-label={label}>
      {parts
        .filter((part) => part.fraction > 0)
        .map((part) => (
          <div
            key={part.title}
            data-tip={part.tip}
            style={{ flex: `${part.fraction} 1 0`, background: `var(${part.token})` }}
          />
        ))}
    </div>
  );
}

export function Facts({ facts }: { facts: readonly { name: string; value: string | null }[] }): VNode {
  return (
    <dl class="facts">
      {facts.map(({ name, value }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value ?? UNKNOWN}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The text of a heading, which shows its sentence on hover and focus. */
export function Heading({ title, tip }: { title: string; tip?: string | undefined }): VNode {
  const text = sentence(tip ?? useContext(HeadingSentences).get(title));
  if (!text) return <>{title}</>;
  return (
    <span class="explained" tabIndex={0} data-tip={text}>
      {title}
    </span>
  );
}

/** A part of a page under a heading, with a note next to it and controls at its end. */
export function Section({
  title,
  note,
  tip,
  end,
  children,
}: {
  title: string;
  note?: string;
  /** Its sentence on hover and focus; absent: that of the table with this title. */
  tip?: string | undefined;
  end?: ComponentChildren;
  children: ComponentChildren;
}): VNode {
  return (
    <section class="section" aria-label={title}>
      <h2>
        <Heading title={title} tip={tip} />
        {note && <small>{note}</small>}
        {end && <span class="end">{end}</span>}
      </h2>
      {children}
    </section>
  );
}
