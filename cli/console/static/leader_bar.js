// The leaders of a partition over time, as one bar of segments.
const WIDTH = 1000, HEIGHT = 34, COLORS = 6, SVG = 'http://www.w3.org/2000/svg';

function drawn(kind, attributes) {
  const made = document.createElementNS(SVG, kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// Return the bar for events [time in UTC, leader], the newest first, or null if none names a leader.
// A leader is a broker id, 'none', or empty if the event does not name it.
export function leaderBar(events) {
  const named = events.filter(([, leader]) => leader !== '').reverse()
    .map(([time, leader]) => ({from: Date.parse(`${time.replace(' ', 'T')}Z`), leader}));
  const spans = named.filter((each, index) => index === 0 || each.leader !== named[index - 1].leader);
  if (!spans.length) return null;
  const first = spans[0].from, whole = Math.max(1, Date.now() - first);
  const bar = drawn('svg', {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: 'leaders', role: 'img'});
  const words = [];
  spans.forEach(({from, leader}, index) => {
    const end = index + 1 < spans.length ? spans[index + 1].from : first + whole;
    const left = (from - first) / whole * WIDTH, width = Math.max(2, (end - from) / whole * WIDTH);
    const name = leader === 'none' ? 'no leader' : `broker ${leader}`;
    const color = leader === 'none' ? 'lost' : `leader${leader % COLORS}`;
    const title = document.createElementNS(SVG, 'title');
    title.textContent = `${name} since ${new Date(from).toISOString()}`;
    words.push(title.textContent);
    const part = drawn('rect', {x: left, y: 0, width, height: HEIGHT, class: color});
    part.append(title);
    bar.append(part);
    if (width > 90) {
      const label = drawn('text', {x: left + 6, y: HEIGHT / 2 + 5});
      label.textContent = name;
      bar.append(label);
    }
  });
  bar.setAttribute('aria-label', words.join('; '));
  return bar;
}
