// Requests to the console, with the token of the printed address.
const token = new URLSearchParams(location.hash.slice(1)).get('token') || '';

export async function get(path) {
  const answer = await fetch(path, {headers: {'Quorate-Console-Token': token}});
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}
