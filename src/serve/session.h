// One connection: reads a request, has it answered, writes the answer, and starts again, all in the thread of its
// event loop. Pipelined requests are answered in order.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "serve/service.h"

namespace lacuna::serve {

class Session;

// An event loop and the connections that live in it.
struct Loop {
  boost::asio::io_context context{1};
  std::unordered_set<std::shared_ptr<Session>> sessions;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(boost::asio::ip::tcp::socket socket, Loop& loop, Service& service);
  void start();
  void check(Clock::time_point now);  // closes what has waited too long
  void hurry();                       // the server is shutting down: answer, but wait for no further request
  void abort();                       // closes at once

 private:
  using Error = boost::system::error_code;
  enum class State { idle, header, body, answering, writing, lingering, closed };

  void enter(State state, double seconds);
  void next_request();
  void read_more();
  void parse_header();
  void on_header();
  void begin_body();
  void read_whole_body(std::size_t length);
  void read_chunks();
  void arrive();
  bool reserve_body(std::size_t length);  // false: too much memory is in use
  void release_body();
  void on_body();
  void respond(Reply reply);
  void on_written(bool close);
  void refuse_and_close(Reply reply);  // further bytes of the client are not read as a request
  void linger();
  void close();

  boost::asio::ip::tcp::socket socket_;
  Loop& loop_;
  Service& service_;
  State state_ = State::idle;
  Clock::time_point deadline_{}, begun_{};
  boost::beast::flat_buffer buffer_;  // bytes that were read and not yet used
  std::optional<boost::beast::http::request_parser<boost::beast::http::empty_body>> parser_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> chunks_;
  Request request_;
  std::string method_, target_, authorization_, host_;
  std::unique_ptr<char[]> memory_;  // of the body
  std::size_t capacity_ = 0, reserved_ = 0, body_begin_ = 0, body_size_ = 0, lingered_ = 0;
  bool keep_alive_ = true, head_only_ = false, counted_ = false, arriving_ = false;
  std::string out_head_, out_body_;
};

}  // namespace lacuna::serve
